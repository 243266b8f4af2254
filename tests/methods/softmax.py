"""Softmax regression with plain numpy: what one full-batch step of SGD makes of a model, recomputed."""

from random import Random

import numpy as np
import torch

from pushcen.client import Client
from pushcen.learning import Learner, Task, TrainingOptions
from pushcen.methods import Place
from pushcen.protocol import Peer, name_of

LR = 0.02
INPUTS, CLASSES, SAMPLES = 40, 3, 12
TRAINING = TrainingOptions(batch=SAMPLES, optimiser="sgd", lr=LR, momentum=0.0)


def samples(client):
    draw = np.random.default_rng(client)
    return draw.standard_normal((SAMPLES, INPUTS)), draw.integers(CLASSES, size=SAMPLES)


def start():
    return np.random.default_rng(99).standard_normal(CLASSES * INPUTS + CLASSES).astype(np.float32).astype(float)


def displacement(row, client):
    """What a step makes of a model: -lr times the gradient of the mean cross entropy."""
    inputs, labels = samples(client)
    weights, bias = row[: CLASSES * INPUTS].reshape(CLASSES, INPUTS), row[CLASSES * INPUTS :]
    scores = inputs @ weights.T + bias
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    chances[np.arange(SAMPLES), labels] -= 1
    return -LR * np.concatenate([(chances.T @ inputs / SAMPLES).ravel(), chances.mean(0)])


def client_of(number, method, edges=None):
    model = torch.nn.Linear(INPUTS, CLASSES)
    with torch.no_grad():
        model.weight.copy_(torch.tensor(start()[: CLASSES * INPUTS]).view(CLASSES, INPUTS))
        model.bias.copy_(torch.tensor(start()[CLASSES * INPUTS :]))
    inputs, labels = samples(number)
    task = Task(model, (torch.tensor(inputs, dtype=torch.float32), torch.tensor(labels)))
    learner = Learner(task, method.update(), TRAINING, client=str(number), seed=number)
    return Client(Peer.found(str(number), method.rules(Place(str(number), edges))), learner, Random(number))


def numbers(client):
    return torch.cat([p.detach().flatten() for p in client.learner.model.parameters()]).double().numpy()


def event(client, receivers):
    """A compute event; return the envelopes for clients, by their numbers."""
    outcome = client.step(client.begin())
    envelopes = client.finish([one.peer.contact for one in receivers], outcome.payloads)
    return {int(name_of(envelope.receiver)): envelope for envelope in envelopes}
