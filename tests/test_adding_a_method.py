"""The method in docs/adding-a-method.md is a real one: it is found by name, trains and talks."""

import dataclasses
import importlib
import inspect
import random
import re
from pathlib import Path

import pytest

from pushcen.client import Client
from pushcen.data import load, split
from pushcen.learning import Learner, Task, Update, build_task
from pushcen.methods import Place, method_named, methods
from pushcen.models import SmallCNN
from pushcen.protocol import Peer

OTHER = {
    "limit": 3,
    "mass": "drop",
    "newest_only": False,
    "receivers": 4,
    "every": 2,
    "renew_after": 70,
    "parts": 7,
    "join_mass": True,
    "full_after": 9,
}
PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
_SIDES = PAGE.read_text().partition("\n## Messages that are no models")[0]
_, *WORDS = re.split(r"^\*\*(\w+)\*\* \(`([\w.]+)`\)", _SIDES, flags=re.MULTILINE)
SIDES = list(zip(WORDS[::3], WORDS[1::3], WORDS[2::3], strict=True))  # what is named, its package, the text about it


@pytest.mark.parametrize(("side", "package", "text"), SIDES, ids=WORDS[::3])
def test_every_class_that_a_side_names_can_be_imported_from_where_the_page_says(side, package, text):
    module = importlib.import_module(package)
    named = {side: "", **dict(re.findall(r"`([A-Z]\w+)\(([^)]*)\)`", text))}
    assert named.keys() <= set(module.__all__)
    for name, options in named.items():
        assert set(re.findall(r"\w+", options)) <= set(inspect.signature(getattr(module, name)).parameters), name


def test_an_option_has_the_same_name_in_the_method_and_in_the_rule_that_uses_it():
    for method in methods().values():
        options = [field.name for field in dataclasses.fields(method) if field.name in OTHER]
        one = method(**{name: OTHER[name] for name in options})
        made = one.rules(Place("a", {"a": ("b",), "b": ("a",)}))
        used = {"renew_after": one.moves, **options_of(made), **options_of(made.inbox), **options_of(made.outbox)}
        assert {name: used[name] for name in options} == {name: OTHER[name] for name in options}, method


def options_of(rule):
    return {field.name: getattr(rule, field.name) for field in dataclasses.fields(rule)}


def test_the_page_has_both_sides_and_only_hooks_that_there_are():
    assert WORDS[::3] == ["Rules", "Update"]
    hooks = re.findall(r"^\| `(\w+)\(", WORDS[-1], re.MULTILINE) + re.findall(r"`([a-z_]+)`", WORDS[-1])
    assert len(hooks) > 10
    assert [hook for hook in hooks if not hasattr(Update, hook)] == []


def test_the_example_is_shorter_than_50_lines_and_trains_by_name(tmp_path, monkeypatch):
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(code.splitlines()) < 50
    (tmp_path / "prox.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    method = method_named("prox:Prox")(pull=0.1)
    divided = split(load("digits"), 3, seed=1)
    clients = []
    for i in range(3):
        task = build_task(lambda client, _: Task(SmallCNN(), divided[client].train, divided[client].test), i, 3)
        peer = Peer.found(str(i), method.rules(Place(str(i))))
        clients.append(Client(peer, Learner(task, method.update(), seed=i), random.Random(i)))
    for _ in range(10):
        for client in clients:
            outcome = client.step(client.begin())
            others = [other for other in clients if other is not client]
            for envelope, other in zip(
                client.finish([other.peer.contact for other in others], outcome.payloads), others, strict=True
            ):
                assert other.receive(envelope)
    assert len(outcome.payloads[0]) < 2.1 * 38_282
    assert min(client.learner.evaluate().metric for client in clients) > 0.8
