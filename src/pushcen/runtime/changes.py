"""What the authority changes for a whole network: settings and weights that a refound's record carries.

A peer takes them over by starting again with them, in the same process. No record makes it run code that its own config
does not name, read a file, or change what is its own affair. What it cannot take over ends it: it must not train wrong.
"""

import contextlib
import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from pushcen.errors import LedgerError, OptionError, PushcenError
from pushcen.learning import Learner, State
from pushcen.runtime.fingerprint import difference, usual
from pushcen.runtime.network import WEIGHTS, Generation, generation_of
from pushcen.runtime.security.records import Records
from pushcen.runtime.status import read_status
from pushcen.runtime.wire import Signed

if TYPE_CHECKING:
    from pushcen.runtime.setup import Setup

_MODEL = "model."


class NewSettings(Exception):  # noqa: N818
    """The network goes on with other settings, or weights, than this peer runs with: it has to start again."""

    def __init__(self, record: Signed) -> None:
        super().__init__("the network goes on with other settings")
        self.record = record


def follow(setup: "Setup", saved: Mapping[str, Any], record: Signed | None) -> tuple["Setup", Generation]:
    """Return what a peer is started with in the generation that it is in, or that a record lets it enter; and that."""
    records = Records(setup.identity)
    records.restore(saved.get("records", []), generation_of(saved["peer"]["peer"]) if "peer" in saved else 0)
    if record is not None:
        records.add(record)
    generation = records.newest
    settings = {key: value for key, value in generation.settings.items() if key != WEIGHTS}
    if not settings:
        return setup, generation
    said = ", ".join(f"{key} = {value}" for key, value in settings.items())
    try:
        if setup.configure is None:
            raise OptionError("it was started from Python with no Setup.configure")
        return setup.configure(settings), generation
    except PushcenError as error:
        text = f"generation {generation.number} has {said:.300}, which this peer cannot take over: {error}"
        _note_end(setup.state, text)
        raise OptionError(text) from error


def check_code(own: Mapping[str, Any], changes: Mapping[str, str]) -> None:
    """Refuse to be led to code, `module:thing`, that the own config does not name at that very key.

    >>> check_code({"method": {"name": "mine:Method"}}, {"method.name": "mine:Method", "method.clusters": "16"})
    >>> check_code({"method": {"name": "pushcen"}}, {"method.name": "theirs:Method"})
    Traceback (most recent call last):
    pushcen.errors.OptionError: method.name = 'theirs:Method': is code, which only this peer's own config may name
    """
    for key, value in changes.items():
        at: Any = own
        for part in key.split("."):
            at = at.get(part) if isinstance(at, Mapping) else None
        if ":" in value and at != value:
            raise OptionError(f"{key} = {value!r}: is code, which only this peer's own config may name")


def check_same(setup: "Setup", saved: Mapping[str, object], about: Mapping[str, str]) -> None:
    """Refuse a state folder of another network, name or run."""
    identity, folder = setup.identity, setup.state
    if saved.get("name") != identity.name or saved.get("network") != identity.network.fingerprint:
        raise LedgerError(
            f"{folder}: belongs to {saved.get('name')} of another network or name, not to {identity.name}"
        )
    before = saved.get("about")
    if not isinstance(before, dict):
        return
    about = {key: fact for key, fact in about.items() if key in before or not key.startswith("task.")}  # or noted later
    if text := difference(about, before, usual=usual(setup.method, about)):
        raise LedgerError(f"{folder}: was made by another run: {text}; use another state folder")


def carry_over(learner: Learner, tensors: Mapping[str, torch.Tensor], setup: "Setup") -> None:
    """Set a new learner's model to committed weights, if they are those of its model."""
    fresh = learner.save(whole=False)
    wrong = [
        f"{name.removeprefix(_MODEL)} is {list(tensors[name].shape) if name in tensors else 'missing'} here"
        for name, tensor in fresh.tensors.items()
        if name.startswith(_MODEL) and (name not in tensors or tensors[name].shape != tensor.shape)
    ]
    if wrong:
        text = f"the present weights are of another model: {wrong[0]}; the authority has to say --weights new"
        _note_end(setup.state, text)
        raise OptionError(text)
    kept = {name: tensors[name] for name in fresh.tensors if name.startswith(_MODEL)}
    learner.restore(State({**fresh.tensors, **kept}, fresh.plain))


def begins_anew(generation: Generation, before: int) -> bool:
    """Return whether there were new weights since a peer was in the generation of this number.

    >>> now = Generation(3, ("ann",), {"weights": "2"})
    >>> begins_anew(now, 1), begins_anew(now, 2)
    (True, False)
    """
    return int(generation.settings.get(WEIGHTS, "0")) > before


def _note_end(folder: Path, text: str) -> None:
    """Let the status say why a peer has not started."""
    with contextlib.suppress(LedgerError, OSError):
        dataclasses.replace(read_status(folder), ended=text, time=time.time()).write(folder)
