"""A trained model out of a run's last checkpoint, as a safetensors file that needs nothing of pushcen."""

import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from pushcen.checks import check_count
from pushcen.config import Config, load_config
from pushcen.errors import RunError
from pushcen.folder import Folder
from pushcen.learning.update import part_of
from pushcen.runs.run import Run
from pushcen.simulation import Quiet, checkpoint
from pushcen.simulation.executors import Host, MakeLearner, start
from pushcen.simulation.reference import reference
from pushcen.simulation.run import Simulation
from pushcen.tasks import TableTask


def export_model(folder: Path, client: int | None = None, out: Path | None = None) -> tuple[Path, str]:
    """Write a client's model, or the reference model if none is named; return the file and how to load it."""
    run = Run.open(folder)
    config = load_config(run.config)
    if client is not None:
        check_count("client", client, 0, config.clients - 1)
    found = checkpoint.find(folder)
    if found is None:
        raise RunError(f"{folder}: has no checkpoint yet, and so no model")
    saved = checkpoint.Saved(found)
    tensors = _reference(config, saved) if client is None else part_of("model", saved.learner(client).tensors)
    file = out or folder / f"model-{'reference' if client is None else client}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file)
    return file, _example(config, tensors, file)


def _reference(config: Config, saved: checkpoint.Saved) -> dict[str, torch.Tensor]:
    """Return the de-biased reference model; what clients do not share (BatchNorm) is client 0's."""
    make = MakeLearner(config.task_function(), config.method, config.training, config.clients, config.seed)
    host = Host(make)
    runs = start(config.executor, host)
    try:
        engine = Simulation(config, runs, Folder(None), Quiet(), saved).engine
        ticket = reference(engine)
        if ticket is None:
            raise RunError(f"{saved.path}: nobody is online with any mass, so there is no reference model")
        row = runs.product(ticket)
        learner = make(0)
        learner.restore(saved.learner(0))
        with torch.no_grad():
            tensors = learner.schema.tensors(learner.model)
            for (entry, place), tensor in zip(learner.schema.slices, tensors, strict=True):
                tensor.copy_(row[place].view(entry.shape))
        return dict(learner.model.state_dict())
    finally:
        runs.close()


def _example(config: Config, tensors: dict[str, torch.Tensor], file: Path) -> str:
    """Return three lines that load the file."""
    imports, model = _model(config, tensors)
    return f"import {imports}, safetensors.torch\nmodel = {model}\nsafetensors.torch.load_model(model, {str(file)!r})"


def _model(config: Config, tensors: dict[str, Any]) -> tuple[str, str]:
    if config.task.function:
        module, _, function = config.task.function.partition(":")
        return module, f"{module}.{function}(0, {config.clients}).model"
    task = config.data_task()
    if isinstance(task, TableTask):
        return "pushcen.models", f"pushcen.models.{task.network(task.divided(config.clients).data).call()}"
    name = task.model
    classes = len(tensors["fc.weight" if name == "resnet18" else "fc3.weight" if name == "lenet" else "fc2.weight"])
    if name != "cnn":
        return "pushcen.models", f"pushcen.models.{'LeNet' if name == 'lenet' else name}({classes})"
    channels, side = tensors["conv1.weight"].shape[1], 2 * math.isqrt(tensors["fc1.weight"].shape[1] // 32)
    return "pushcen.models", f"pushcen.models.SmallCNN({classes}, {channels}, ({side}, {side}))"
