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
from pushcen.learning import Learner, State
from pushcen.learning.work import part_of
from pushcen.runs.run import Run
from pushcen.simulation import Quiet, checkpoint
from pushcen.simulation.executors import Host, MakeLearner, start
from pushcen.simulation.reference import reference
from pushcen.simulation.run import Simulation
from pushcen.streams import seed_of
from pushcen.tasks import TableTask


def export_model(
    folder: Path, client: int | None = None, out: Path | None = None, *, whole: bool = False
) -> tuple[Path, str]:
    """Write a client's model, or the reference model if none is named; return the file and how to load it.

    What is frozen is not in the file, unless `whole`: the file's metadata and the text say on which `base` it stands.
    """
    run = Run.open(folder)
    config = load_config(run.config)
    if client is not None:
        check_count("client", client, 0, config.clients - 1)
    found = checkpoint.find(folder)
    if found is None:
        raise RunError(f"{folder}: has no checkpoint yet, and so no model")
    saved = checkpoint.Saved(found)
    if client is None:
        tensors, base = _reference(config, saved, whole)
    else:
        tensors, base = _of_client(config, client, saved.learner(client), whole)
    file = out or folder / f"model-{'reference' if client is None else client}.safetensors"
    save_file(tensors, file, {"base": base} if base else None)
    return file, _example(config, tensors, file, base)


def _maker(config: Config) -> MakeLearner:
    return MakeLearner.of(config, config.task_function())


def _of_client(config: Config, client: int, state: State, whole: bool) -> tuple[dict[str, torch.Tensor], str]:
    """Return a client's model, and the fingerprint of the frozen part that it lacks."""
    base = state.plain.get("frozen", "")
    if not (whole and base):
        tensors = config.method.update().exported(part_of("model", state.tensors))
        return {name: tensor.contiguous() for name, tensor in tensors.items()}, base
    learner = _maker(config)(client)
    learner.restore(state)
    return _tensors(learner, whole)


def _reference(config: Config, saved: checkpoint.Saved, whole: bool) -> tuple[dict[str, torch.Tensor], str]:
    """Return the de-biased reference model; what clients do not share (BatchNorm) is client 0's."""
    make = _maker(config)
    runs = start(config.executor, Host(make))
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
        return _tensors(learner, whole, shared=True)
    finally:
        runs.close()


def _tensors(learner: Learner, whole: bool, *, shared: bool = False) -> tuple[dict[str, torch.Tensor], str]:
    """Return a learner's model, each tensor by itself, as a file needs them; without what is frozen, unless `whole`."""
    state = {name: one for name, one in learner.model.state_dict().items() if isinstance(one, torch.Tensor)}
    kept, base = (state, "") if whole else (learner.frozen.without_fixed(state), learner.frozen.base)
    tensors = learner.update.exported(kept, shared=shared)
    return {name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()}, base


def _example(config: Config, tensors: dict[str, torch.Tensor], file: Path, base: str) -> str:
    """Return three lines that load the file."""
    imports, model = _model(config, tensors, seeded=bool(base))
    said = f"# without what is frozen: base {base}\n" if base else ""
    strict = ", strict=False" if base else ""
    load = f"model.load_state_dict(safetensors.torch.load_file({str(file)!r}){strict})"  # knows tied weights
    return f"{said}import {imports}, safetensors.torch\nmodel = {model}\n{load}"


def _model(config: Config, tensors: dict[str, Any], seeded: bool) -> tuple[str, str]:
    """Return what to import, and how to make the model; if `seeded`, with the very weights that the run began with."""
    if config.task.function:
        module, _, name = config.task.function.rpartition(":")
        imports, function = [module], f"{module}.{name}"
        if module.endswith(".py"):  # a file need not be where modules are looked for
            imports, function = ["pushcen.learning"], f"pushcen.learning.load_task({config.task.function!r})"
        if not seeded:
            return imports[0], f"{function}(0, {config.clients}).model"
        seed = seed_of(config.seed, "initial weights")
        made = f"pushcen.learning.build_task({function}, 0, {config.clients}, {seed})"
        return ", ".join(dict.fromkeys([*imports, "pushcen.learning"])), f"{made}.model"
    task = config.data_task()
    if isinstance(task, TableTask):
        return "pushcen.models", f"pushcen.models.{task.network(task.divided(config.clients).data).call()}"
    name = task.model
    classes = len(tensors["fc.weight" if name == "resnet18" else "fc3.weight" if name == "lenet" else "fc2.weight"])
    if name != "cnn":
        return "pushcen.models", f"pushcen.models.{'LeNet' if name == 'lenet' else name}({classes})"
    channels, side = tensors["conv1.weight"].shape[1], 2 * math.isqrt(tensors["fc1.weight"].shape[1] // 32)
    return "pushcen.models", f"pushcen.models.SmallCNN({classes}, {channels}, ({side}, {side}))"
