"""Small models for the codec's tests, and one whose weights need no random generator."""

import torch
from torch import nn


class Mixed(nn.Module):
    """A bit of everything: BatchNorm under odd names, an embedding, norms, buffers, tied and frozen weights."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3)
        self.odd = nn.ModuleDict({"scale_and_shift": nn.BatchNorm2d(4), "sync": nn.SyncBatchNorm(4)})
        self.norm = nn.LayerNorm([4, 5])
        self.embedding = nn.Embedding(6, 8)
        self.head = nn.Linear(8, 6)
        self.head.weight = self.embedding.weight
        self.attention = nn.MultiheadAttention(8, 2)
        self.frozen = nn.Linear(8, 1, bias=False).requires_grad_(False)
        self.token = nn.Parameter(torch.ones(1, 1, 8))
        self.register_buffer("running", torch.ones(3))
        self.register_buffer("steps", torch.tensor(7))
        self.register_buffer("scratch", torch.ones(2), persistent=False)


def example():
    """A model of known numbers, the same on every machine."""
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 5))
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            count = torch.arange(parameter.numel()) * (7 + number)
            parameter.copy_(((count % 23) - 11).view(parameter.shape) / 16)
    return model
