"""Measure LoRA with A and B trained beside FFA-LoRA, for docs/learning.md: `python scripts/measure_adapters.py`.

A small transformer is pretrained to tell the topic of a text, whose words are of one of two kinds. Then eight clients,
each with texts of few topics, fine-tune it on texts with words of both kinds, of which only the second kind's topic is
asked for. Needs `transformers` and `peft`, and takes some minutes.
"""

import copy
import functools
import statistics

import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from pushcen.learning import Task, TrainingOptions, correct, freeze_lora_a
from pushcen.methods import AsyncDFedAvg, PushCen
from pushcen.simulation import EvaluationOptions, ExecutorOptions, World, simulate_world

TOPICS, WORDS_OF_EACH, LENGTH, OTHERS = 8, 10, 16, 80
CLIENTS, SAMPLES, SEEDS = 8, 240, 2
METHODS = {"PushCen": PushCen(), "Async-DFedAvg": AsyncDFedAvg()}


def texts(topics, kinds, draw, *, distract=False):
    """Make a text for each topic: five words of it, of these kinds; other words; perhaps five to distract."""
    count = len(topics)

    def words(topics, kinds):
        which = torch.randint(WORDS_OF_EACH, (count, 5), generator=draw)
        return OTHERS + (2 * topics + kinds)[:, None] * WORDS_OF_EACH + which

    parts = [words(topics, kinds), torch.randint(OTHERS, (count, LENGTH - 5 - 5 * distract), generator=draw)]
    if distract:
        parts.append(words(torch.randint(TOPICS, (count,), generator=draw), 1 - kinds))
    whole = torch.cat(parts, 1)
    return whole.gather(1, torch.rand(whole.shape, generator=draw).argsort(1))


@functools.cache
def pretrained():
    """Return the transformer after 12,000 texts with words of one kind each."""
    draw = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=OTHERS + 2 * TOPICS * WORDS_OF_EACH,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        num_labels=TOPICS,
    )
    model = BertForSequenceClassification(config)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(375):
        topics, kinds = (torch.randint(most, (32,), generator=draw) for most in (TOPICS, 2))
        loss = nn.functional.cross_entropy(model(texts(topics, kinds, draw)).logits, topics)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval()


def task(client, _, seed=0, rank=4, ffa=False):
    """Return the task of a client that has mostly two topics of eight."""
    lora = LoraConfig(task_type="SEQ_CLS", r=rank, lora_alpha=2 * rank, target_modules=["query", "value"])
    model = get_peft_model(copy.deepcopy(pretrained()), lora)
    if ffa:
        freeze_lora_a(model)
    draw = torch.Generator().manual_seed(1000 * seed + client)
    likes = torch.ones(TOPICS)
    likes[[client % TOPICS, (client + 3) % TOPICS]] = 8.0
    topics = torch.multinomial(likes, SAMPLES, replacement=True, generator=draw)
    words, cut = texts(topics, torch.ones_like(topics), draw, distract=True), SAMPLES // 2
    return Task(
        model,
        (words[:cut], topics[:cut]),
        (words[cut:], topics[cut:]),
        loss=lambda outputs, targets: nn.functional.cross_entropy(outputs.logits, targets),
        metric=lambda outputs, targets: correct(outputs.logits, targets),
    )


def measure(method, lr, **options):
    """Return mean and spread of the accuracy over seeds, and the bytes of a message."""
    found, size = [], 0
    for seed in range(SEEDS):
        world = World(
            method,
            TrainingOptions(batch=16, lr=lr),
            clients=CLIENTS,
            horizon=20.0,
            seed=seed,
            evaluation=EvaluationOptions(every=20.0),
            executor=ExecutorOptions(workers=1),
        )
        final = simulate_world(world, functools.partial(task, seed=seed, **options))["final"]
        found.append(100 * final["accuracy"])
        size = final["bytes_per_push"]
    return statistics.fmean(found), statistics.stdev(found), size


def untuned():
    """Return the accuracy before fine-tuning, on the test data of all clients of the first seed."""
    found = []
    for client in range(CLIENTS):
        words, topics = task(client, CLIENTS).test
        with torch.no_grad():
            found.append(float(correct(pretrained()(words).logits, topics).mean()))
    return 100 * statistics.fmean(found)


def main():
    print(f"before fine-tuning: {untuned():.1f} %\n")
    print("| method | what trains | rank | lr | accuracy % | SD over seeds | kB of a push |")
    print("|---|---|---:|---:|---:|---:|---:|")
    for name, method in METHODS.items():
        for rank, ffa in ((4, False), (4, True), (8, True)):
            for lr in (0.01, 0.03):
                mean, spread, size = measure(method, lr, rank=rank, ffa=ffa)
                what = "B" if ffa else "A and B"
                print(
                    f"| {name} | {what} | {rank} | {lr:g} | {mean:.1f} | {spread:.1f} | {size / 1000:.1f} |", flush=True
                )


if __name__ == "__main__":
    main()
