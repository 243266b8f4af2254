"""What all peers of a run must agree on, and how they tell each other what differs."""

import dataclasses
import hashlib
import json
import platform
from collections.abc import Mapping
from importlib import metadata

from pushcen.errors import OptionError
from pushcen.learning import Learner, TrainingOptions
from pushcen.methods import Method
from pushcen.runtime.logs import printable
from pushcen.version import __version__

_TENSORS = ("frozen", "schema")  # what the names of tensors stand behind
_NAME = 160  # of a tensor deep in a model
_OWN = ("receivers", "limit")  # options of methods in which peers may differ
_LATER = {"codec": "dense"}  # options that were added; at these defaults, peers agree with those that lack them
_SENDERS = ("pushcen-lean.feedback", "pushcen-lean.spread")  # options that only a sender needs
_VARIES, _LONGEST = 64, 120  # how much another may say that varies, and how long each may be


def describe(method: Method, training: TrainingOptions, learner: Learner, seed: int) -> dict[str, str]:
    """List what must agree, by name. Of codecs, those that a peer may lack; pushcen's are in the method's options.

    >>> import torch
    >>> from pushcen.learning import Task
    >>> from pushcen.methods import PushCen
    >>> task = Task(torch.nn.Linear(2, 1), (torch.zeros(8, 2), torch.zeros(8)))
    >>> about = describe(PushCen(clusters=8), TrainingOptions(), Learner(task, PushCen(clusters=8).update()), seed=0)
    >>> about["method"], about["method.clusters"], about["schema.weight"]
    ('pushcen', '8', '[1, 2] float32 clustered')
    """
    about = {"method": type(method).name, "training.batch_norm": training.batch_norm, "seed": str(seed)}
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        if not _is_own(method, field.name) and _LATER.get(field.name) != value:
            about[f"method.{field.name}"] = str(value)
    entries = learner.schema.entries
    about |= {f"schema.{entry.name}": str(entry).removeprefix(entry.name + " ") for entry in entries}
    if learner.update.sparsity is not None:
        about["sparsity"] = "top-k"
    for part, codec in learner.update.codecs().items():
        key = f"codec.{part}" if part else "codec"
        if codec.mark:
            if codec.name.startswith("__main__:"):
                raise OptionError(f"codec {codec.name}: must be in a module of its own; peers know it by that name")
            about[key] = f"{codec.name}, number {codec.code}"
            options = [field.name for field in dataclasses.fields(codec) if field.compare]
            about |= {f"{key}.{name}": str(getattr(codec, name)) for name in options}
        if start := learner.update.reference(codec):
            about[f"{key}.start"] = start.fingerprint.hex()
    about |= {f"task.{name}": fact for name, fact in learner.task.about.items()}
    return about | {f"frozen.{name}": form for name, form in learner.frozen.fingerprints().items()}


def usual(method: Method, about: Mapping[str, str]) -> dict[str, str]:
    """Return what of that is at its default: an option that a newer version adds must not part it from older ones.

    >>> from pushcen.methods import PushCen
    >>> usual(PushCen(clusters=8), {"method": "pushcen", "method.clusters": "8", "method.strength": "0.01"})
    {'method.strength': '0.01'}
    """
    options = {f"method.{field.name}": field for field in dataclasses.fields(method)}
    found = {}
    for key in about.keys() & options.keys():
        field = options[key]
        default = field.default_factory() if callable(field.default_factory) else field.default
        if str(default) == about[key]:
            found[key] = about[key]
    return found


def varying(method: Method, training: TrainingOptions) -> dict[str, str]:
    """List what may differ between peers, and seldom should: their own options, and versions.

    >>> from pushcen.methods import PushCen
    >>> varies = varying(PushCen(receivers=3), TrainingOptions(epochs=2))
    >>> varies["method.receivers"], varies["training.epochs"], "version.torch" in varies
    ('3', '2', True)
    """
    own = {
        f"method.{one.name}": getattr(method, one.name)
        for one in dataclasses.fields(method)
        if _is_own(method, one.name)
    }
    plain = (bool, int, float, str, type(None))
    local = {f"training.{one.name}": getattr(training, one.name) for one in dataclasses.fields(training)}
    found = {key: str(value) for key, value in {**own, **local}.items() if isinstance(value, plain)}
    found.pop("training.batch_norm", None)  # which must agree
    versions = {"pushcen": __version__, "python": platform.python_version(), "torch": metadata.version("torch")}
    return found | {f"version.{name}": version for name, version in versions.items()}


def read_varying(said: Mapping[str, str]) -> dict[str, str]:
    """Take what another says that varies, as far as that is short and printable.

    >>> read_varying({"training.lr": "0.1", "x" * 500: "y"})
    {'training.lr': '0.1'}
    """
    short = [(key, value) for key, value in said.items() if max(len(key), len(value)) <= _LONGEST]
    return {printable(key): printable(value) for key, value in sorted(short)[:_VARIES]}


def _is_own(method: Method, option: str) -> bool:
    """Return whether peers may differ in an option of their method."""
    return option in _OWN or f"{type(method).name}.{option}" in _SENDERS


def digest(about: Mapping[str, str]) -> bytes:
    """Return sixteen bytes that differ when anything differs."""
    return hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode()).digest()[:16]


def difference(
    mine: Mapping[str, str], theirs: Mapping[str, str], most: int = 3, usual: Mapping[str, str] | None = None
) -> str:
    """Return a text on what differs; of tensors, first the first of the model. What is `usual` may be missing there.

    >>> difference({"method": "pushcen", "method.clusters": "8"}, {"method": "pushcen", "method.clusters": "16"})
    'method.clusters = 16 there, 8 here'
    >>> difference({"frozen.9.bias": "[2] a", "frozen.10.bias": "[2] a"}, {}, most=1)
    'frozen.9.bias = missing there, [2] a here, and 1 more'
    """
    places = {key: place for place, key in enumerate(mine)}

    def order(key: str) -> tuple[str, int, str]:
        kind = key.partition(".")[0]
        return (kind, places.get(key, len(places)), key) if kind in _TENSORS else (key, 0, "")

    unsaid = (usual or {}).keys() - theirs.keys()
    differ = (key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key) and key not in unsaid)
    keys = sorted(differ, key=order)
    found = [
        f"{key[:_NAME]} = {theirs.get(key, 'missing')[:80]} there, {mine.get(key, 'missing')[:80]} here" for key in keys
    ]
    more = f", and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more
