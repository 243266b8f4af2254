"""A trained model out of a run's last checkpoint, as a safetensors file that needs nothing of pushcen."""

import math
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from pushcen.config import Config, load_config
from pushcen.runs.run import Run
from pushcen.simulation import load_client, load_reference


def export_model(folder: Path, client: int | None = None, out: Path | None = None) -> tuple[Path, str]:
    """Write a client's model, or the reference model if none is named; return the file and how to load it.

    What clients do not share, such as BatchNorm, the reference model has as client 0 has it.
    """
    config = load_config(Run.open(folder).config)
    tensors = load_client(folder, client or 0)
    if client is None:
        tensors |= load_reference(folder)
    file = out or folder / f"model-{'reference' if client is None else client}.safetensors"
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, file)
    return file, _example(config, tensors, file)


def _example(config: Config, tensors: dict[str, torch.Tensor], file: Path) -> str:
    """Return three lines that load the file."""
    imports, model = _model(config, tensors)
    return f"import {imports}, safetensors.torch\nmodel = {model}\nsafetensors.torch.load_model(model, {str(file)!r})"


def _model(config: Config, tensors: dict[str, Any]) -> tuple[str, str]:
    if config.task.function:
        module, _, function = config.task.function.partition(":")
        return module, f"{module}.{function}(0, {config.clients}).model"
    name = config.images().model
    classes = len(tensors["fc.weight" if name == "resnet18" else "fc3.weight" if name == "lenet" else "fc2.weight"])
    if name != "cnn":
        return "pushcen.models", f"pushcen.models.{'LeNet' if name == 'lenet' else name}({classes})"
    channels, side = tensors["conv1.weight"].shape[1], 2 * math.isqrt(tensors["fc1.weight"].shape[1] // 32)
    return "pushcen.models", f"pushcen.models.SmallCNN({classes}, {channels}, ({side}, {side}))"
