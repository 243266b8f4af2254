"""Make the data of three tasks that are not images: `python experiments/own/prepare.py`. What is there stays.

Needs statsmodels, or the file randhie/src/randhie.csv that comes with it (`--randhie`), and WordNet 3.0's data.noun
(`--nouns`; on Debian: `apt-get install wordnet-base`). The base model is trained here, in about a minute.
"""

import argparse
import csv
import importlib.util
from pathlib import Path

import numpy as np
import torch

from tasks import FOLDER, LORA, TEXT, Reader, tokens

NOUNS = Path("/usr/share/wordnet/data.noun")
IN_ORDER = (
    "tops act animal artifact attribute body cognition communication event feeling food group location motive object "
    "person phenomenon plant possession process quantity relation shape state substance time"
)
FILES = IN_ORDER.split()  # numbered from 3 on
EACH, EACH_BEFORE = 500, 2000  # definitions of a file among clients; in training the base
# of the plan, the person and the baseline; nothing that was counted or paid in the year, no logarithm, nothing imputed
COLUMNS = "site plan coins tookphys black income xage female educdec time num mhi disea physlm ghindx mdeoff pioff"
KEPT = COLUMNS.split()


def visits(source, target):
    """Write a row for each person, of the first year that is there: none, some (1 or 2) or many visits to a doctor."""
    found = {}
    with source.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["zper"], row)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*KEPT, "visits"])
        for row in found.values():
            count = float(row["mdvis"])
            row["site"], row["plan"] = f"site {row['site']}", f"plan {row['plan']}"
            writer.writerow([*(row[name] for name in KEPT), "none" if not count else "some" if count < 3 else "many"])


def glosses(source, target):
    """Write definitions as numbers with the lexicographer file of each, without the examples, in three parts."""
    found = {name: [] for name in FILES}
    with source.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith(" "):
                found[FILES[int(line[9:11]) - 3]].append(tokens(line.partition("|")[2].partition(";")[0]))
    draw, arrays = np.random.default_rng(0), {}
    for name in FILES:
        found[name] = draw.permutation(np.unique(found[name], axis=0))
    parts = {"text": (TEXT, 0, EACH), "lora": (LORA, 0, EACH), "before": (TEXT, EACH, EACH + EACH_BEFORE)}
    for part, (kinds, first, last) in parts.items():
        some = [found[kind][first:last] for kind in kinds]
        arrays[f"{part}_words"] = np.concatenate(some)
        arrays[f"{part}_labels"] = np.repeat(np.arange(len(kinds)), [len(one) for one in some])
    np.savez_compressed(target, **arrays)


def base(source, target, epochs=3):
    """Train a model on definitions that no client has, of the kinds of the part `text`."""
    from safetensors.torch import save_file

    with np.load(source, allow_pickle=False) as file:
        words, labels = torch.from_numpy(file["before_words"]).long(), torch.from_numpy(file["before_labels"]).long()
    torch.manual_seed(0)
    model = Reader()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(epochs):
        right = 0
        for rows in torch.randperm(len(labels)).split(32):
            outputs = model(words[rows])
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(outputs, labels[rows])
            loss.backward()
            optimiser.step()
            right += int((outputs.argmax(1) == labels[rows]).sum())
        print(f"base model, epoch {epoch + 1}: {100 * right / len(labels):.1f} % of its training data", flush=True)
    save_file(model.state_dict(), target)


def main():
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--randhie", type=Path)
    options.add_argument("--nouns", type=Path, default=NOUNS)
    given = options.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    table, text, model = (FOLDER / name for name in ("randhie.csv", "glosses.npz", "base.safetensors"))
    if not table.exists():
        package = importlib.util.find_spec("statsmodels")
        if not given.randhie and not package:
            options.error("--randhie FILE: must be given where statsmodels is not installed")
        visits(given.randhie or Path(package.origin).parent / "datasets/randhie/src/randhie.csv", table)
    if not text.exists():
        glosses(given.nouns, text)
    if not model.exists():
        base(text, model)


if __name__ == "__main__":
    main()
