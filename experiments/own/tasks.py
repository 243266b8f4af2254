"""Two tasks of WordNet's definitions of nouns: to tell from which of its lexicographers' files a definition is.

`experiments/own/prepare.py` makes the data. Who has what is drawn once: seeds of runs differ in first weights, order of
batches, receivers and join times.
"""

import copy
import functools
import os
import re
import zlib
from pathlib import Path

import numpy as np
import torch
from torch import nn

from pushcen import Task
from pushcen.data import Data, Dirichlet, split

FOLDER = Path(os.environ.get("OWN_DATA", "runs/own/data"))
TEXT = ("act", "animal", "artifact", "attribute", "communication", "location", "person", "plant", "state", "substance")
LORA = ("body", "cognition", "event", "food", "group", "object", "phenomenon", "possession", "quantity", "time")
WORDS, LENGTH, WIDTH = 4096, 20, 64  # words told apart; of a definition; of the models


def tokens(text):
    """Return a definition's words as numbers, by a checksum, so that no vocabulary has to be agreed upon; 0 is none."""
    found = [1 + zlib.crc32(word.encode()) % (WORDS - 1) for word in re.findall(r"[a-z]+", text.lower())[:LENGTH]]
    return np.array(found + [0] * (LENGTH - len(found)), np.int16)


class BagOfWords(nn.Module):
    """A definition is the mean of its words' vectors."""

    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(WORDS, WIDTH, padding_idx=0)
        self.kind = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, len(TEXT)))

    def forward(self, words):
        return self.kind(self.words(words))


class Reader(nn.Module):
    """A BERT of two layers that sees a definition's words and not what fills it up."""

    def __init__(self):
        from transformers import BertConfig, BertForSequenceClassification

        super().__init__()
        config = BertConfig(
            vocab_size=WORDS,
            hidden_size=WIDTH,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=2 * WIDTH,
            max_position_embeddings=LENGTH,
            num_labels=len(TEXT),
        )
        self.bert = BertForSequenceClassification(config)

    def forward(self, words):
        return self.bert(words, attention_mask=(words > 0).long()).logits


@functools.cache
def divided(part, clients):
    """Return the definitions of a part, divided among clients by Dirichlet's 0.4."""
    with np.load(FOLDER / "glosses.npz", allow_pickle=False) as file:
        words, labels = torch.from_numpy(file[f"{part}_words"]).long(), torch.from_numpy(file[f"{part}_labels"]).long()
    return split(Data(part, words, labels, {"text": TEXT, "lora": LORA}[part]), clients, Dirichlet(0.4), min_samples=40)


@functools.cache
def base():
    """Return the model that `prepare.py` has trained."""
    from safetensors.torch import load_file

    with torch.random.fork_rng():  # what is drawn after it is the same for the client that loads it and for all others
        model = Reader()
    model.load_state_dict(load_file(FOLDER / "base.safetensors"))
    return model


def text(client, clients):
    """Train everything from the beginning."""
    mine = divided("text", clients)[client]
    return Task(BagOfWords(), mine.train, mine.test)


def lora(client, clients):
    """Train adapters of rank 4 of the attention, and a new last layer."""
    from peft import LoraConfig, get_peft_model

    model, mine = copy.deepcopy(base()), divided("lora", clients)[client]
    model.bert.classifier = nn.Linear(WIDTH, len(LORA))
    adapters = LoraConfig(task_type="SEQ_CLS", r=4, lora_alpha=8, target_modules=["query", "value"])
    model.bert = get_peft_model(model.bert, adapters)
    return Task(model, mine.train, mine.test)
