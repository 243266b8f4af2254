"""The method in docs/adding-a-method.md is a real one: it is found by name, trains and talks."""

import importlib
import random
import re
from pathlib import Path

import pytest

from pushcen.client import Client
from pushcen.data import load, split
from pushcen.learning import Learner, Task, Update, build_task
from pushcen.methods import Place, method_named
from pushcen.models import SmallCNN
from pushcen.protocol import Peer

PAGE = Path(__file__).parents[1] / "docs" / "adding-a-method.md"
SIDES = re.findall(r"^\*\*(\w+)\*\* \(`([\w.]+)`\)(.*?)\n\n", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("side", "package", "text"), SIDES, ids=[side for side, _, _ in SIDES])
def test_every_class_that_a_side_names_can_be_imported_from_where_the_page_says(side, package, text):
    named = {side, *re.findall(r"`([A-Z]\w+)`", text)}
    public = importlib.import_module(package).__all__
    assert named <= set(public), f"{package} lacks {named - set(public)}"


def test_the_page_has_both_sides_and_only_hooks_that_there_are():
    assert [side for side, _, _ in SIDES] == ["Rules", "Update"]
    text = PAGE.read_text().partition("**Update**")[2]
    hooks = re.findall(r"^\| `(\w+)\(", text, re.MULTILINE) + re.findall(r"`([a-z_]+)`", text)
    assert hooks
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
