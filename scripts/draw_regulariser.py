"""Draw docs/pictures/regulariser.svg: what centroid regularisation does to real weights. `make figures` runs it.

One client of many learns its digits with PushCen, three times from the same first weights, the regulariser at three
strengths. Every panel shows the same layer of the same client.
"""

import copy
import pathlib

import numpy as np
import torch

from pushcen.codec import cluster
from pushcen.drawing import BLUE, ORANGE, canvas, drawing, write
from pushcen.learning import Learner, Task, TrainingOptions, Work
from pushcen.methods import PushCen
from pushcen.tasks import DataOptions, ImageTask

PICTURES = pathlib.Path(__file__).parent.parent / "docs" / "pictures"
LAYER, CLUSTERS, EVENTS, CLIENTS = "fc1.weight", 8, 60, 20
STRENGTHS = (0.0, 0.001, 0.1)


def trained(strength):
    """Train one client for some events, and give the layer."""
    torch.manual_seed(0)
    task = ImageTask(DataOptions("digits", alpha=0.4), model="cnn", seed=0)(3, CLIENTS)
    method = PushCen(clusters=CLUSTERS, strength=strength, mask=True)
    learner = Learner(
        Task(copy.deepcopy(task.model), task.train, task.test), method.update(), TrainingOptions(), seed=0
    )
    for _ in range(EVENTS):
        learner.step(Work(1, []))
    return learner.model.get_parameter(LAYER).detach().clone()


def picture():
    figure, axes = canvas(len(STRENGTHS), height=6.0, sharex=True)
    for panel, strength in zip(axes, STRENGTHS, strict=True):
        weights = trained(strength)
        found = cluster(weights, CLUSTERS)
        error = float((found.decode() - weights).square().sum() / weights.square().sum())
        panel.hist(weights.numpy().ravel(), bins=np.linspace(-0.17, 0.17, 171), color=BLUE, alpha=0.75)
        for value in found.centroids.tolist():
            panel.axvline(value, color=ORANGE, linewidth=1.2, linestyle="--" if value else ":")
        what = f"lambda {strength:g}" if strength else "no regulariser (lambda 0)"
        panel.set_title(f"{what}: {error:.2%} of the weights' energy is lost when they are sent", loc="left")
        panel.set_yscale("log")
        panel.yaxis.set_major_formatter("{x:,g}")
        panel.set_ylabel("weights in a bin")
    axes[-1].set_xlabel(f"weight of {LAYER}, one client, after {EVENTS} events (dashed: its {CLUSTERS} centroids)")
    return figure


def main():
    PICTURES.mkdir(exist_ok=True)
    with drawing():
        figure = picture()
    write(figure, PICTURES / "regulariser.svg")


if __name__ == "__main__":
    main()
