"""The config: every option in one place, told back whole, and every mistake named."""

import re
import sys
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pushcen.checks import check_order
from pushcen.config import (
    Builder,
    Config,
    ConfigError,
    Text,
    differences,
    flat,
    load_config,
    parse_settings,
    presets,
)
from pushcen.config.config import BUILDER
from pushcen.errors import OptionError, PushcenError
from pushcen.folder import Folder, read_config
from pushcen.learning import TrainingOptions
from pushcen.methods import methods
from pushcen.runs.forecast import forecast
from pushcen.simulation import EvaluationOptions, NetworkOptions, ParticipationOptions


def test_the_page_has_every_method_with_its_options():
    page = (Path(__file__).parents[2] / "docs" / "config.md").read_text("utf-8").split("## Methods")[1].split("##")[0]
    rows = dict(re.findall(r"^\| `([\w-]+)` \| .* \| (.*)\|$", page, re.MULTILINE))
    assert list(rows) == list(methods())
    common = {"receivers", "limit", "mass", "newest_only", "join_mass", "full_after"}  # told once, around the table
    for name, method in methods().items():
        assert set(re.findall(r"`(\w+)`", rows[name])) == {field.name for field in fields(method)} - common


def test_the_page_has_every_option_of_training():
    page = (Path(__file__).parents[2] / "docs" / "config.md").read_text("utf-8").split("## Training")[1].split("##")[0]
    told = [name for cell in re.findall(r"^\| (`.*?) \|", page, re.MULTILINE) for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(told) == sorted(field.name for field in fields(TrainingOptions))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"network": {"los": 0.1}}, "network.los = 0.1: no such key. Did you mean network.loss? network has latency"),
        ({"alpha": 0.1}, "alpha = 0.1: no such key. Did you mean data.alpha?"),
        ({"participaton": {}}, "participaton = {}: no such key. Did you mean participation?"),
        ({"clients": "many"}, "clients = 'many': must be a whole number"),
        ({"clients": 2.5}, "clients = 2.5: must be a whole number"),
        ({"clients": True}, "clients = True: must be a whole number"),
        ({"clients": 0}, "clients = 0: must be a whole number, 1 or more"),
        ({"network": {"loss": "0.1"}}, "network.loss = '0.1': must be a number"),
        ({"network": {"loss": 1.5}}, "network.loss = 1.5: must be a number from 0 to 1"),
        ({"network": 3}, "network = 3: must be a section, with latency"),
        ({"meters": {"names": "mass"}}, "meters.names = 'mass': must be a list, each a text"),
        ({"evaluation": {"reference": 1}}, "evaluation.reference = 1: must be true or false"),
        ({"method": {"name": "pushcan"}}, "method.name = 'pushcan': there is no such method; did you mean pushcen or"),
        ({"method": {"clusters": 1}}, "method.clusters = 1: must be a whole number from 2 to 256"),
        ({"method": {"name": "swift", "clusters": 8}}, "method.clusters = 8: no such key"),
        ({"methods": {"pushcen": {"recievers": 3}}}, "methods.pushcen.recievers = 3: no such key. Did you mean"),
        ({"methods": {"pushcan": {}}}, "methods = 'pushcan': there is no such method"),
        ({"training": {"lr": -1}}, "training.lr = -1.0: must be a number above 0"),
        ({"training": {"options": {"beta": 1}}}, "training.options = {'beta': 1}: adam has no beta; it has amsgrad"),
        ({"training": {"groups": [{"lr": 0.1}]}}, "training.groups = {'lr': 0.1}: must have match"),
        ({"training": {"groups": {"lr": 0.1}}}, "training.groups = {'lr': 0.1}: must be a list, each a table"),
        (
            {"training": {"schedule": {"kind": "cosine"}}},
            "training.schedule.over = 0: must be a whole number, 1 or more",
        ),
        ({"training": {"schedule": "cosine"}}, "training.schedule = 'cosine': must be a section, with kind, unit"),
        ({"data": {"partition": "iid", "alpha": 0.1}}, "data.alpha = 0.1: partition iid has no such option"),
        ({"task": {"model": "cn"}}, "task.model = 'cn': must be one of cnn, lenet, resnet18"),
        (
            {"task": {"function": "a:b"}, "data": {"alpha": 1}},
            "data.alpha = 1: is not read where task.function = 'a:b'",
        ),
        ({"collect": "middle"}, "collect = 'middle': must be one of end, start"),
    ],
)
def test_a_mistake_is_named_with_its_key_its_value_and_what_would_be_right(values, said):
    with pytest.raises(PushcenError) as caught:
        load_config(values)
    assert said in str(caught.value)


@dataclass(frozen=True)
class View:
    size: int = 3
    bound: int = 5
    says: str = ""

    def __post_init__(self):
        check_order("size", self.size, "bound", self.bound)
        if self.says:
            raise OptionError(self.says)


@dataclass(frozen=True)
class Small:
    view: View = View()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"size": 9}, "view.size = 9: must be at most view.bound = 5"),
        ({"says": "view.bound = 5: a full key"}, "view.bound = 5: a full key"),
        (
            {"says": "size = 1: not where resize = 2 or its size is 3"},
            "view.size = 1: not where resize = 2 or its size is 3",
        ),
        ({"says": "no two views are alike"}, "view: no two views are alike"),
    ],
)
def test_a_section_names_its_options_and_the_config_puts_its_own_name_before_each(values, said):
    with pytest.raises(ConfigError) as caught:
        Builder().build(Small, {"view": values})
    assert str(caught.value) == said


BAD = ["-1", "0", "0.5", "2", "300", "1" * 30, "nan", "inf", "nonsense", "''", "true", "[]", "[-1]", "['nonsense']"]

TEXTS = (
    "neighbours.file",
    "participation.joins",
    "executor.address",
    "task.function",
    "task.weights",
    "data.source",
    "data.path",
)


def options():
    """Every option of every section, with the method that has it."""
    for method in methods():
        keys = BUILDER.keys(Config, {"method": {"name": method}})
        yield from ((method, key) for key in keys if method == "pushcen" or key.startswith("method."))


@pytest.mark.parametrize(("method", "key"), [one for one in options() if one[1] != "method"])
def test_whatever_is_wrong_with_an_option_is_said_of_the_key_that_was_set(method, key):
    said = []
    for bad in BAD:
        try:
            load_config({"method": {"name": method}}, {key: Text(bad)})
        except PushcenError as error:
            said.append(f" {error}")
    assert bool(said) == (key not in TEXTS)
    assert [words for words in said if f" {key} = " not in words] == []


@pytest.mark.parametrize(
    ("key", "bad", "others"),
    [
        ("neighbours.degree", "50", {"neighbours.kind": "graph"}),
        ("neighbours.degree", "50", {"neighbours.kind": "graph", "neighbours.graph": "k-out"}),
        ("neighbours.file", "nowhere", {"neighbours.kind": "graph"}),
        ("data.source", "nothing", {}),
        ("data.path", "nowhere", {}),
        ("data.partition", "natural", {}),
        ("data.per_client", "50", {"data.partition": "pathological"}),
        ("data.pool_test", "true", {}),
        ("data.min_samples", "10000", {}),
        ("data.alpha", "0.0001", {"data.min_samples": "80"}),
        ("clients", "10000", {}),
        ("seed", "9223372036854775808", {}),
        ("task.function", "nowhere:f", {}),
        ("task.function", "math", {}),
        ("task.function", "math:pi", {}),
        ("task.weights", "nowhere", {}),
        ("participation.joins", "nowhere", {"participation.delayed": "0"}),
    ],
)
def test_what_turns_out_wrong_only_with_data_and_clients_is_said_of_that_key_too(key, bad, others):
    with pytest.raises(PushcenError) as caught:
        forecast(load_config({}, {name: Text(value) for name, value in {**others, key: bad}.items()}))
    assert f" {key} = " in f" {caught.value}"


def test_all_mistakes_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        load_config({"clients": "many", "network": {"loss": "high", "los": 1}, "method": {"clusters": 1}})
    assert [line.split(" ")[0] for line in str(caught.value).splitlines()] == [
        "clients", "network.loss", "network.los", "method.clusters",
    ]  # fmt: skip


VALUES = st.fixed_dictionaries(
    {},
    optional={
        "clients": st.integers(1, 300) | st.just(10**6),  # some methods compute what takes the cube of it
        "seed": st.integers(0, 2**40),
        "horizon": st.floats(0, 1e6),
        "collect": st.sampled_from(["end", "start"]),
        "method.name": st.sampled_from([name for name, kind in methods().items() if not kind.needs_everybody]),
        "network.loss": st.floats(0, 1),
        "network.notice": st.sampled_from(["sure", "doubt", "silent"]),
        "compute.classes": st.lists(st.floats(0.01, 100), min_size=1, max_size=4),
        "participation.delayed": st.floats(0, 1),
        "participation.farewell": st.booleans(),
        "evaluation.every": st.floats(0.01, 10),
        "meters.names": st.lists(st.sampled_from(["mass", "traffic", "kept"]), unique=True),
        "training.lr": st.floats(1e-9, 1),
        "training.optimiser": st.sampled_from(["adam", "adamw", "radam"]),
        "training.options": st.fixed_dictionaries(
            {}, optional={"betas": st.just([0.5, 0.9]), "eps": st.floats(1e-9, 1)}
        ),
        "training.groups": st.lists(
            st.fixed_dictionaries({"match": st.text("ab*.", min_size=1), "lr": st.floats(0.1, 1)})
        ),
        "training.schedule.warm_up": st.integers(0, 99),
        "training.per_client.epochs": st.lists(st.integers(1, 9), min_size=1) | st.just("1..5"),
        "data.source": st.text(min_size=1, max_size=20),
        "data.alpha": st.floats(0.01, 10),
    },
)


@given(VALUES)
def test_what_is_written_back_builds_the_same_config(values):
    config = load_config("digits", values)
    assert load_config(config.plain()) == config
    assert Config.identity_of(config.plain()) == config.identity()


@given(VALUES)
def test_a_config_survives_its_file(tmp_path_factory, values):
    config = load_config("digits", values)
    folder = tmp_path_factory.mktemp("config")
    Folder(folder).write_config(config.plain())
    assert load_config(folder / "config.toml") == config
    assert Config.identity_of(read_config(folder)) == config.identity()
    assert [path.name for path in folder.iterdir()] == ["config.toml"]


WORDY = ("data.source", "training.options", "training.groups")  # which TOML writes in another way than Python


@given(VALUES)
def test_flags_say_the_same_as_values(values):
    flags = {
        key: Text(str(value).lower() if isinstance(value, bool) else repr(value).strip("'"))
        for key, value in values.items()
        if key not in WORDY
    }
    given_so = {key: value for key, value in values.items() if key not in WORDY}
    assert load_config("digits", flags) == load_config("digits", given_so)


def test_a_flag_is_read_as_its_options_type():
    changed = parse_settings(["clients=7", "data.source=2024", "network.loss=.5", "meters.names=['mass']"])
    config = load_config("digits", changed)
    assert (config.clients, config.data.source, config.network.loss) == (7, "2024", 0.5)
    assert config.meters.names == ("mass",)


def test_another_method_keeps_the_options_that_it_has_too():
    values = {"method": {"name": "pushcen", "clusters": 8, "limit": 3}}
    assert load_config(values, {"method.name": "push-sum"}).method.limit == 3
    with pytest.raises(ConfigError, match=r"method.clusters = 8: no such key"):
        load_config(values, {"method.name": "push-sum", "method.clusters": 8})


def test_options_for_a_method_by_name_hold_wherever_it_is_chosen():
    values = {"methods": {"pushcen": {"receivers": 3, "clusters": 8}, "divshare": {"receivers": 1}}}
    assert load_config(values, {"method.clusters": 4}).method.receivers == 3
    assert load_config(values, {"method.clusters": 4}).method.clusters == 4
    assert load_config(values, {"method": "divshare"}).method.receivers == 1


def test_a_method_that_needs_a_graph_gets_one_and_is_refused_with_anything_else():
    assert load_config("digits", {"method": "swift"}).neighbours.kind == "graph"
    with pytest.raises(PushcenError, match=r"neighbours\.kind = 'view': swift needs a fixed graph; must be graph"):
        load_config("digits", {"method": "swift", "neighbours.kind": "view"})


def test_a_method_of_ones_own_is_written_back_by_the_name_that_finds_it(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom pushcen.methods import AsyncDFedAvg\n"
        "@dataclass(frozen=True)\nclass Mine(AsyncDFedAvg):\n    name = 'mine'\n    extra: int = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "mine", None)
    del sys.modules["mine"]  # another test's; this one's goes when the test ends
    config = load_config({"method": {"name": "mine:Mine", "extra": 5}})
    assert config.plain()["method"]["name"] == "mine:Mine"
    assert load_config(config.plain()).method.extra == 5


def test_how_a_run_is_carried_out_makes_no_other_run():
    one, other = load_config("digits", {"executor.workers": 1}), load_config("digits", {"executor.workers": 2})
    assert one != other
    assert one.identity() == other.identity()
    assert differences(one.identity(), load_config("digits", {"seed": 1}).identity()) == ["seed"]


def test_what_is_resolved_is_written_out(tmp_path):
    Folder(tmp_path).write_config(load_config("digits", {"data.source": "cifar10"}).plain())
    values = flat(read_config(tmp_path))
    assert (values["task.model"], values["data.alpha"], values["method.name"]) == ("lenet", 0.4, "pushcen")
    assert not [key for key in values if key.startswith("methods.")]


@pytest.mark.parametrize("name", presets())
def test_every_preset_is_a_config(name):
    assert load_config(name).clients > 1


def test_a_file_that_is_no_toml_is_refused_with_its_name(tmp_path):
    (tmp_path / "bad.toml").write_text("clients = = 3")
    with pytest.raises(ConfigError, match=r"bad.toml: .*line 1"):
        load_config(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bad.toml"):
        load_config(tmp_path / "bad.toml")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        (lambda: NetworkOptions(loss=2), "loss = 2: must be a number from 0 to 1"),
        (lambda: NetworkOptions(latency=-1), "latency = -1: must be a number, 0 or more"),
        (lambda: ParticipationOptions(stay=0), "stay = 0: must be a number above 0"),
        (lambda: EvaluationOptions(reference=1), "reference = 1: must be true or false"),
    ],
)
def test_a_section_made_in_python_names_its_own_options(section, said):
    with pytest.raises(OptionError) as caught:
        section()
    assert str(caught.value) == said
