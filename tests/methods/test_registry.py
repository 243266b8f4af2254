"""Methods by name: those here, a user's own, those of other packages; and options that cannot be."""

import sys
from importlib.metadata import EntryPoint

import pytest

from pushcen.errors import OptionError
from pushcen.learning import CentroidUpdate, Learner, Task, Update, Work
from pushcen.methods import Method, Place, PushCen, method_named, methods, registry
from pushcen.protocol import UNIT
from tests.learning.tasks import tiny_data, tiny_model

OWN = """
from dataclasses import dataclass
from typing import ClassVar
from pushcen.methods import Method
from pushcen.protocol import Equal, Rules, Whole

@dataclass(frozen=True)
class Gossip(Method):
    name: ClassVar[str] = "gossip"
    peers: int = 1

    def rules(self, place):
        return Rules(weights=Equal(), outbox=Whole(self.peers))

nothing = 5
"""


NO_GRAPH = [
    "pushcen",
    "push-sum",
    "async-dfedavg",
    "swift-random",
    "divshare",
    "epidemic",
    "sgp",
    "ad-psgd",
    "spafl",
    "fedkd",
    "independent",
]
GRAPH = ["swift", "quantized-push-sum", "rasgp", "d-psgd", "choco", "moniqua", "a2cid2", "dspodfl"]


def test_all_methods_have_their_names():
    assert {*NO_GRAPH, "pushcen-lean", *GRAPH} <= set(methods())
    assert all(method.name == name for name, method in methods().items())


@pytest.mark.parametrize("name", NO_GRAPH)
def test_every_method_can_be_made_with_no_option_and_trains(name):
    method = method_named(name)()
    method.rules(Place("a"))
    outcome = Learner(Task(tiny_model(), tiny_data()), method.update()).step(Work(UNIT, []))
    assert outcome.loss > 0
    assert method_named(name).needs_graph is False


def test_these_need_a_graph():
    assert [name for name, method in methods().items() if method.needs_graph] == GRAPH


@pytest.mark.parametrize(
    ("typed", "meant"), [("pushcan", "pushcen"), ("swift-randon", "swift-random"), ("pushsum", "push-sum")]
)
def test_an_unknown_method_names_the_nearest(typed, meant):
    with pytest.raises(
        OptionError, match=rf"method\.name = '{typed}': there is no such method; did you mean .*{meant}"
    ):
        method_named(typed)


def test_an_unknown_method_like_none_lists_all():
    with pytest.raises(
        OptionError, match=r"no such method; There are pushcen, pushcen-lean, push-sum, .*, or module:Class"
    ):
        method_named("zzzzzz")


@pytest.fixture
def own_file(tmp_path, monkeypatch):
    (tmp_path / "my_methods_for_a_test.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))  # what a lookup adds to it goes again
    yield "my_methods_for_a_test"
    sys.modules.pop("my_methods_for_a_test", None)


def test_a_method_in_a_file_of_ones_own_works_by_name(own_file):
    method = method_named(f"{own_file}:Gossip")(peers=3)
    assert method.rules(Place("a")).outbox.receivers == 3
    assert type(method.update()) is Update


def test_what_is_no_method_is_refused_by_name(own_file):
    for wrong, why in (("nothing", "5 is no subclass"), ("Absent", "has no Absent")):
        with pytest.raises(OptionError, match=why):
            method_named(f"{own_file}:{wrong}")
    with pytest.raises(OptionError, match="math:sqrt"):
        method_named("math:sqrt")


def test_an_installed_package_adds_a_method_and_cannot_replace_one(own_file, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint("gossip", f"{own_file}:Gossip", registry.GROUP),
        EntryPoint("pushcen", f"{own_file}:Gossip", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == registry.GROUP else [])
    assert method_named("gossip").__name__ == "Gossip"
    assert method_named("pushcen") is PushCen


def test_a_broken_package_warns_and_the_others_still_work(own_file, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    points = [EntryPoint("broken", value, registry.GROUP) for value in ("no_such_package:X", f"{own_file}:nothing")]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with pytest.warns(UserWarning, match=r"method broken, installed as .*, cannot be used"):
        assert methods()["pushcen"] is PushCen


REFUSED = [
    ("pushcen", {"clusters": 1}, "clusters = 1"),
    ("pushcen", {"clusters": 300}, "clusters = 300"),
    ("pushcen", {"strength": -1}, r"strength = -1"),
    ("pushcen", {"scale": "median"}, r"scale = 'median': must be one of sum, mean"),
    ("pushcen", {"profile": "fast"}, "profile = 'fast'"),
    ("pushcen", {"mass": "lose"}, "mass = 'lose': must be one of keep, drop"),
    ("pushcen", {"limit": -1}, "limit = -1"),
    ("push-sum", {"limit": 1.5}, r"limit = 1\.5"),
    ("async-dfedavg", {"mass": "hold"}, "mass = 'hold'"),
    ("swift", {"every": 0}, "every = 0"),
    ("swift-random", {"every": -2}, "every = -2"),
    ("divshare", {"parts": 0}, "parts = 0"),
    ("epidemic", {"receivers": 0}, "receivers = 0"),
    ("sgp", {"limit": -1}, "limit = -1"),
    ("quantized-push-sum", {"codec": "gzip"}, "codec = 'gzip'"),
    ("choco", {"codec": "modulo"}, "codec = 'modulo': sends only a part"),
    ("choco", {"gamma": 0}, "gamma = 0: must be a number, above 0 and at most 1"),
    ("choco", {"gamma": 1.5}, r"gamma = 1\.5"),
    ("choco", {"rounds": 1}, "rounds = 1"),
    ("moniqua", {"theta": 0.0}, r"theta = 0\.0: must be a number, 1e-06 or more"),
    ("moniqua", {"theta": float("inf")}, "theta = inf"),
    ("moniqua", {"bits": 9}, "bits = 9: must be a whole number from 1 to 8"),
    ("moniqua", {"bits": 2.0}, r"bits = 2\.0"),
    ("divshare", {"receivers": 0}, "receivers"),
    ("dspodfl", {"chance": 0.0}, r"chance = 0\.0"),
    ("divshare", {"cut_seed": -1}, "cut_seed = -1"),
]


@pytest.mark.parametrize(("name", "options", "message"), REFUSED, ids=[f"{n} {o}" for n, o, _ in REFUSED])
def test_an_option_that_cannot_be_is_refused_when_the_method_is_made(name, options, message):
    with pytest.raises(OptionError, match=message):
        method_named(name)(**options)


def test_pushcens_options_reach_its_rules_and_its_update():
    method = PushCen(
        clusters=16,
        strength=0.5,
        scale="mean",
        mask=False,
        receivers=3,
        limit=4,
        mass="drop",
        join_mass=True,
        full_after=3,
    )
    rules, update = method.rules(Place("a")), method.update()
    assert (rules.inbox.limit, rules.inbox.mass, rules.outbox.receivers, rules.join_mass) == (4, "drop", 3, True)
    assert isinstance(update, CentroidUpdate)
    assert (update._clusters, update._strength, update._scale, update._masked) == (16, 0.5, "mean", False)
    assert rules.full_after == 3
    assert PushCen().rules(Place("a")).join_mass is False


def test_every_client_has_an_update_of_its_own():
    method = PushCen()
    assert method.update() is not method.update()
    assert isinstance(method, Method)
