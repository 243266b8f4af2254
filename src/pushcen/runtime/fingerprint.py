"""What all peers of a run must agree on, and how they tell each other what differs."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping

from pushcen.codec import Schema
from pushcen.learning import Training
from pushcen.methods import Method

_OWN = ("receivers", "limit")  # options of methods in which peers may differ


def describe(
    method: Method, training: Training, schema: Schema, seed: int, frozen: Mapping[str, str] | None = None
) -> dict[str, str]:
    """List what must agree, by name; `frozen` has the fingerprints of what does not train.

    >>> import torch
    >>> from pushcen.methods import PushCen
    >>> about = describe(PushCen(clusters=8), Training(), Schema.of(torch.nn.Linear(2, 1)), seed=0)
    >>> about["method"], about["method.clusters"], about["schema.weight"]
    ('pushcen', '8', '[1, 2] float32 clustered')
    """
    about = {"method": type(method).name, "training.batch_norm": training.batch_norm, "seed": str(seed)}
    for field in dataclasses.fields(method):
        if field.name not in _OWN:
            about[f"method.{field.name}"] = str(getattr(method, field.name))
    about |= {f"schema.{entry.name}": str(entry).removeprefix(entry.name + " ") for entry in schema.entries}
    return about | {f"frozen.{name}": form for name, form in (frozen or {}).items()}


def digest(about: Mapping[str, str]) -> bytes:
    """Give sixteen bytes that differ when anything differs."""
    return hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode()).digest()[:16]


def difference(mine: Mapping[str, str], theirs: Mapping[str, str], most: int = 3) -> str:
    """Say what differs, for people.

    >>> difference({"method": "pushcen", "method.clusters": "8"}, {"method": "pushcen", "method.clusters": "16"})
    'method.clusters = 16 there, 8 here'
    """
    keys = sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))
    found = [
        f"{key[:80]} = {theirs.get(key, 'missing')[:80]} there, {mine.get(key, 'missing')[:80]} here" for key in keys
    ]
    more = f", and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more
