"""Experiments become runs, and runs are found by what they are."""

from contextlib import suppress

import pytest
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.errors import ConfigError
from pushcen.folder import Folder
from pushcen.methods import methods
from pushcen.reproduce.experiment import SCALES, TITLES, names, read, world
from pushcen.reproduce.paper import DATASETS
from pushcen.reproduce.plan import plan, steps
from pushcen.runs import RunStore

PAPERS = ("paper", "medium", "small")
OWN = {"field": "field", "tuning": "tuning"}  # worlds in which all methods can live


def worlds_of(experiment):
    there = [(dataset, scale) for dataset in TITLES for scale in SCALES if is_world(dataset, scale)]
    return [(experiment, *at) for at in there if at[1] in (OWN.get(experiment, PAPERS))]


def is_world(dataset, scale):
    with suppress(ConfigError):
        return world(dataset, scale).is_file()


@pytest.mark.parametrize(("experiment", "dataset", "scale"), [one for name in names() for one in worlds_of(name)])
def test_every_experiment_passes_a_dry_run(experiment, dataset, scale, tmp_path):
    command = ["reproduce", experiment, "--dataset", dataset, "--scale", scale, "--dry-run", "--runs", str(tmp_path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert f"{len(plan(read(experiment), dataset, scale))} runs" in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_scale_that_a_data_set_does_not_have_is_refused_by_name():
    with pytest.raises(ConfigError, match="--scale medium: there is no such world of cifar100, only paper and small"):
        world("cifar100", "medium")


def test_an_experiment_runs_in_its_own_world_and_where_a_method_cannot_live_names_the_key(tmp_path):
    command = ["reproduce", "field", "--dry-run", "--runs", str(tmp_path)]
    assert "field scale" in CliRunner().invoke(app, command).output
    refused = CliRunner().invoke(app, [*command, "--scale", "small"])
    assert refused.exit_code == 2
    assert "participation.delayed = 0.1" in refused.output


def test_the_table_of_the_field_has_every_method_that_there_is():
    assert {run.config.method_name for run in plan(read("field"), "digits", "field")} == set(methods())


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_papers_worlds_are_the_papers(dataset):
    [config] = [run.config for run in plan(read("table4"), dataset, "paper") if run.row.name == "pushcen-paper"]
    assert config.clients == (100 if dataset == "cifar10" else 50)
    assert (config.horizon, config.evaluation.every, config.participation.delayed) == (60.0, 1.0, 0.1)
    method, training = config.method, config.training
    assert (method.clusters, method.limit, method.strength, method.receivers) == (32, 16, 0.1, 10)
    assert (method.profile, method.mass, method.join_mass, method.feedback) == ("paper", "drop", True, False)
    assert method.full_after == 0
    assert (training.epochs, training.batch, training.optimiser, training.lr) == (1, 32, "adam", 1e-3)


def test_small_is_small():
    for experiment in [name for name in names() if name not in OWN]:
        for run in plan(read(experiment), "cifar10", "small"):
            assert steps(run.config) <= 6000
        for dataset in ("cifar100", "tiny-imagenet"):
            for run in plan(read(experiment), dataset, "small"):
                assert steps(run.config) <= 1600


@pytest.mark.parametrize("scale", PAPERS)
def test_divshare_sends_two_dense_models_where_others_send_ten(scale):
    sent = {run.row.name: run.config.method for run in plan(read("table1"), "cifar10", scale)}
    assert 5 * sent["divshare"].receivers == sent["async-dfedavg"].receivers == sent["pushcen"].receivers


def test_all_tables_share_the_runs_that_they_have_in_common():
    def configs(name):
        return {run.row.name: run.config for run in plan(read(name), "cifar10", "small") if run.alpha == 0.4}

    ours, rules = configs("table1")["pushcen"], configs("table1")["pushcen-paper"]
    for name in ("table4", "table5", "table6", "changes"):
        assert configs(name)["pushcen"] == ours
        assert configs(name)["pushcen-paper"] == rules
    assert configs("table4")["no-regulariser"] == configs("table7")["lambda0"]


def test_a_run_is_found_by_its_config_and_not_by_its_name(tmp_path):
    [one, other, *_] = plan(read("table6"), "cifar10", "small")
    folder = tmp_path / "any name" / "at all"
    Folder(folder).write_config(one.config.plain())
    store = RunStore(tmp_path)
    assert store.folder(one.name, one.config) == folder
    assert store.find(one.config).folder == folder
    assert store.find(other.config) is None
    assert store.folder(other.name, other.config) == tmp_path / other.name
    assert store.folder(other.name, other.config) == tmp_path / other.name  # decided once


def test_a_name_that_another_run_has_is_not_taken(tmp_path):
    [one, *_] = plan(read("table6"), "cifar10", "small")
    [changed, *_] = plan(read("table6"), "cifar10", "small", settings={"horizon": 3.0})
    Folder(tmp_path / one.name).write_config(one.config.plain())
    assert RunStore(tmp_path).folder(changed.name, changed.config) == tmp_path / f"{one.name}-2"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table = 'table1'", "title"),
        ("title = 'x'\ntable = 'y'", "must have rows"),
        ("title = 'x'\ntable = 'y'\n[rows.a]\nlabel = 'a'\nbase = 'b'", "must be one of a"),
        ("title = 'x'\ntable = 'y'\n[rows.a]\nlabel = 'a'\nbass = 'b'", "rows.a.bass"),
        ("title = 'x'\ntable = 'y'\nshows = 'loss'", "shows"),
        ("title = ", "at end of document|line 1"),
    ],
)
def test_what_is_wrong_with_an_experiment_file_is_told(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read(str(file))


def test_a_row_an_alpha_or_a_data_set_that_there_is_not_is_told():
    with pytest.raises(ConfigError, match="--rows pushcan: table1 has independent, "):
        read("table1").only(rows=("pushcan",))
    with pytest.raises(ConfigError, match=r"--alpha 0\.5: table1 has 0\.1, 0\.4, 1\.0"):
        read("table1").only(alphas=(0.5,))
    with pytest.raises(ConfigError, match="--dataset mnist: must be one of cifar10"):
        world("mnist", "small")
