"""The files of a checkpoint: the queue, every peer, every learner, the messages under way, all at one moment.

Each part of the world saves and restores itself; here is what becomes of it on disk.

`checkpoint/` has a folder for each checkpoint, and `current`, which names the one that counts and is replaced in one
move. A run goes on from it bit for bit. All of it is JSON and safetensors: nothing in it can run.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from pushcen.codec import Payload, Reference, read_reference
from pushcen.errors import PushcenError, RunError
from pushcen.files import sync, write_whole
from pushcen.folder import CHECKPOINT, Folder
from pushcen.learning import OFFER, State
from pushcen.references import ReferenceName
from pushcen.simulation.engine import Engine
from pushcen.simulation.executors import Executor, Ticket
from pushcen.simulation.jobs import Facts, Save

VERSION = 1
GROUP = 32  # learners in one file
_MORE = ("at", "size", "bases")  # what only some tickets have


def save(engine: Engine, folder: Folder, world: dict[str, Any]) -> None:
    """Save everything. Waits for all arithmetic first, so that all rows up to here are written."""
    if folder.path is None:
        return
    engine.collector.collect()
    base = folder.path / CHECKPOINT
    name = f"{engine.events}-{engine.evaluator.rows}"
    new = base / f"{name}.new"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    plain = [state for group in range(0, len(engine.nodes), GROUP) for state in _save_learners(engine, group, new)]
    tickets: dict[int, Ticket] = {}
    state = {
        "version": VERSION,
        "world": world,
        "metrics_bytes": folder.sync_metrics(),
        "engine": engine.save(),
        "nodes": [node.save() for node in engine.nodes],
        "learners": plain,
    }
    text = json.dumps(state, default=lambda thing: _name_ticket(thing, tickets))
    messages = {
        f"{key}/{part}": torch.frombuffer(bytearray(data), dtype=torch.uint8)
        for key, ticket in tickets.items()
        for part, data in engine.executor.messages(ticket).items()
    }
    save_file(messages, new / "messages.safetensors")
    (new / "state.json").write_text(text, encoding="utf-8")
    for file in new.iterdir():
        sync(file)
    sync(new)
    final = base / name
    shutil.rmtree(final, ignore_errors=True)
    new.rename(final)
    sync(base)
    write_whole(base / "current", f"{name}\n".encode())
    for other in base.iterdir():
        if other.is_dir() and other != final:
            shutil.rmtree(other, ignore_errors=True)


def find(path: Path) -> Path | None:
    """Find the checkpoint that counts in a run's folder; None if there is none yet."""
    current = path / CHECKPOINT / "current"
    if not current.exists():
        return None
    name = current.read_text(encoding="utf-8").strip()
    found = current.parent / name
    if "/" in name or not (found / "state.json").is_file():
        raise RunError(f"{current}: names {name!r}, and there is no such checkpoint")
    return found


class Saved:
    """A checkpoint that was read. Messages in it become tickets as soon as there is an executor."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = (path / "state.json").read_text(encoding="utf-8")
            self.plain = json.loads(self._text)
            if self.plain["version"] != VERSION:
                raise RunError(f"{path}: is of version {self.plain['version']}, and this pushcen reads {VERSION}")
            self.world: dict[str, Any] = dict(self.plain["world"])
            self.metrics_bytes: int = self.plain["metrics_bytes"]
            recorder = self.plain["engine"].get("recorder")
            self.recorder: dict[str, Any] | None = recorder if isinstance(recorder, dict) else None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{path}: cannot be read: {error!r:.200}") from error

    def learner(self, client: int) -> State:
        """Read what a client's learner saved."""
        try:
            with safe_open(self.path / f"learners-{client // GROUP * GROUP}.safetensors", "pt") as file:
                mine = [name for name in file.keys() if name.startswith(f"{client}/")]  # noqa: SIM118
                tensors = {name.partition("/")[2]: file.get_tensor(name) for name in mine}
            return State(tensors, self.plain["learners"][client])
        except (OSError, SafetensorError, KeyError, IndexError, TypeError) as error:
            raise RunError(f"{self.path}: client {client} cannot be read: {error!r:.200}") from error

    def first(self, executor: Executor, facts: Facts) -> Any:
        """Revive the tickets, and return that of the model that all started from."""
        tickets: dict[int, Any] = {}
        try:
            messages = load_file(self.path / "messages.safetensors")
            references: dict[bytes, Reference] = {}
            for name in sorted(messages, key=lambda name: not name.endswith(f"/{OFFER}")):  # what others build upon
                key, part = map(int, name.split("/"))
                payload = Payload.parse(messages[name].numpy().tobytes(), facts.schema, references)
                tickets.setdefault(key, {})[part] = payload
                if part == OFFER:
                    reference = read_reference(payload)
                    references[reference.fingerprint] = reference
            self._state = json.loads(self._text, object_hook=lambda thing: _revive_ticket(thing, tickets, executor))
            return self._state["engine"]["first"]
        except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
            raise RunError(f"{self.path}: cannot be read: {error!r:.200}") from error

    def restore(self, engine: Engine) -> None:
        """Bring a fresh engine to where the saved one was."""
        try:
            engine.restore(self._state["engine"], self._state["nodes"])
        except (ValueError, KeyError, TypeError, IndexError) as error:
            if isinstance(error, PushcenError):
                raise
            raise RunError(f"{self.path}: cannot be read: {error!r:.200}") from error


def _save_learners(engine: Engine, group: int, into: Path) -> list[dict[str, Any]]:
    nodes = engine.nodes[group : group + GROUP]
    states: list[State] = [engine.executor.wait(ticket) for ticket in [node.proxy.ask(Save()) for node in nodes]]
    tensors = {
        f"{node.index}/{name}": tensor.contiguous()
        for node, state in zip(nodes, states, strict=True)
        for name, tensor in state.tensors.items()
    }
    save_file(tensors, into / f"learners-{group}.safetensors")
    return [state.plain for state in states]


def _name_ticket(thing: Any, tickets: dict[int, Ticket]) -> Any:
    if not isinstance(thing, Ticket):
        raise TypeError(f"{thing!r:.80} cannot be saved")
    tickets[thing.key] = thing
    more = {name: value for name in _MORE if (value := getattr(thing, name))}
    return {"ticket": thing.key, "client": thing.client, "born": thing.born, **more}


def _revive_ticket(thing: dict[str, Any], tickets: dict[int, Any], executor: Executor) -> Any:
    if "ticket" not in thing:
        return thing
    key = thing["ticket"]
    if not isinstance(tickets[key], Ticket):
        ticket = tickets[key] = executor.given(thing["client"], tickets[key])
        ticket.born, ticket.at, ticket.size = thing["born"], thing.get("at", 0.0), thing.get("size", 0)
        ticket.bases = [(ReferenceName(*name), base) for name, base in thing.get("bases", ())]
    return tickets[key]


__all__ = ["Saved", "find", "save"]
