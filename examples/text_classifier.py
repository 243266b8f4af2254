# %% [markdown]
# # A text classifier, and clients that know few of the classes
# From which of eight chapters of a handbook (Python's own, which comes with it) is a paragraph? Ten clients have
# paragraphs of all chapters, most of them of two, and train a small BERT together. Nothing is downloaded:
#
#     python examples/text_classifier.py
#     pushcen simulate --task examples/text_classifier.py:task --clients 10
#
# The first takes about two minutes. It needs transformers: `pip install 'pushcen[hf]'`. A pretrained model is taken by
# its name on the Hugging Face hub, or from a folder, with its own tokens:
#
#     MODEL=distilbert-base-uncased pushcen simulate --task examples/text_classifier.py:task --set training.lr=5e-5

# %%
import copy
import os
import re
import zlib
from functools import cache
from pydoc_data.topics import topics

import numpy as np
from datasets import Dataset

import pushcen

MODEL = os.environ.get("MODEL", "")
CLIENTS = int(os.environ.get("CLIENTS", "10"))
HORIZON = float(os.environ.get("HORIZON", "20"))
WIDTH = int(os.environ.get("WIDTH", "64"))
CHAPTERS = (
    "compound",
    "debugger",
    "formatstrings",
    "specialnames",
    "string-methods",
    "types",
    "typesmapping",
    "typesseq",
)
WORDS, LENGTH = 2000, 48  # how many words it tells apart; tokens of a paragraph

# %% [markdown]
# ## The model
# BERT with one layer, and words that are numbered by a checksum: two words may share a number, and no vocabulary has to
# be agreed upon. A pretrained model is loaded once, with its tokenizer, and copied for each client.


# %%
def small_model():
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=WORDS,
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=2 * WIDTH,
        max_position_embeddings=LENGTH,
        num_labels=len(CHAPTERS),
    )
    return BertForSequenceClassification(config)


@cache
def pretrained():
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(MODEL, num_labels=len(CHAPTERS))
    return model, AutoTokenizer.from_pretrained(MODEL)


def tokens(text: str) -> list[int]:
    if MODEL:
        return pretrained()[1](text, truncation=True, max_length=LENGTH)["input_ids"]
    words = re.findall(r"[a-z_]+|\S", text.lower())[:LENGTH]
    return [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in words]


# %% [markdown]
# ## The data
# A `datasets.Dataset` as it is. `text` is no argument of the model, so it is left out; paragraphs of many lengths are
# padded and masked; `label` is the target.


# %%
@cache
def paragraphs() -> Dataset:
    rows = []
    for label, chapter in enumerate(CHAPTERS):
        found = [" ".join(one.split()) for one in re.split(r"\n\s*\n", topics[chapter])]
        rows += [{"text": one, "input_ids": tokens(one), "label": label} for one in found if len(one.split()) >= 8]
    return Dataset.from_list(rows)


@cache
def owners(clients: int) -> np.ndarray:
    """Return whose each paragraph is: a chapter's are eight times as likely with a fifth of the clients."""
    draw = np.random.default_rng(7)
    likes = np.where((np.arange(clients)[:, None] - np.arange(len(CHAPTERS))) % 5 == 0, 8.0, 1.0)
    likes /= likes.sum(0)
    return np.array([draw.choice(clients, p=likes[:, label]) for label in paragraphs()["label"]])


def task(client: int, clients: int) -> pushcen.Task:
    mine = np.random.default_rng(client).permutation(np.flatnonzero(owners(clients) == client))
    tests = len(mine) // 4
    model = copy.deepcopy(pretrained()[0]) if MODEL else small_model()
    return pushcen.Task(model, train=paragraphs().select(mine[tests:]), test=paragraphs().select(mine[:tests]))


# %% [markdown]
# ## Together and alone
# The model has its own loss, and accuracy is counted from its logits.

# %%
if __name__ == "__main__":
    world = {"clients": CLIENTS, "horizon": HORIZON, "training": {"batch": 8, "lr": 3e-3}, "evaluation": {"every": 5}}
    results = pushcen.compare(["pushcen", "async-dfedavg", "independent"], world, task=task)
    print(results.table.to("markdown"))
