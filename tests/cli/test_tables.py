"""Tables on the command line: simulated, described, and their columns written for all sites."""

import json

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from pushcen.cli import app
from pushcen.data import read_columns
from pushcen.runs import Run
from tests.data import patients

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.output, result.exception)
    return result


@pytest.fixture
def table(tmp_path):
    return patients.write(tmp_path / "patients.csv")


def test_a_table_is_simulated_with_a_client_for_each_owner(table, tmp_path):
    told = run(
        "simulate", "--data", table, "--label", "outcome", "--owner", "hospital", "--horizon", 1, "--runs", tmp_path,
        "--name", "one",
    ).stderr  # fmt: skip
    assert "120 rows; outcome is a class, one of 2 (ill, well)" in told
    assert "scaled by all training rows" in told
    done = Run.open(tmp_path / "one")
    assert (done.finished, done.config["clients"]) == (True, 3)


@pytest.mark.parametrize("label", ["outcome", "days"])
def test_an_exported_model_of_a_table_loads_as_the_example_says(table, tmp_path, label):
    run(
        "simulate", "--data", table, "--label", label, "--clients", 3, "--horizon", 1, "--runs", tmp_path, "--name", "a"
    )
    told = run("export", tmp_path / "a", "--client", 0).stdout
    code = told[told.index("import") :].splitlines()[:3]
    space = {}
    exec("\n".join(line.strip() for line in code), space)
    weights = load_file(tmp_path / "a" / "model-0.safetensors")
    assert all(torch.equal(space["model"].state_dict()[name], tensor) for name, tensor in weights.items())


def test_describe_says_which_target_was_taken_and_what_each_column_is(table):
    told = run("data", "describe", table, "--label", "days", "--clients", 3).stdout
    assert "days is a number (a regression)" in told
    assert "a number each, in tenths below" in told
    assert "missing values are told" in told
    told = run("data", "describe", table, "--label", "outcome", "--owner", "hospital").stdout
    assert "outcome is a class, one of 2 (ill, well)" in told
    assert "3 clients, Natural()" in told


def test_columns_of_all_sites_are_one_file(tmp_path):
    found = patients.rows()
    for name in patients.HOSPITALS:
        patients.write(tmp_path / f"{name}.csv", [row for row in found if row["hospital"] == name])
    sites = sorted(tmp_path.glob("*.csv"))
    out = tmp_path / "columns.json"
    told = run(
        "data", "columns", *sites, "--label", "outcome", "--owner", "hospital", "--without", "days", "--out", out
    )
    columns = read_columns(out)
    assert f"fingerprint {columns.fingerprint}" in told.stdout
    assert columns.rows == 120
    assert [column.name for column in columns.used] == ["age", "sex", "ward", "smokes", "admitted"]
    assert json.loads(out.read_text())["fingerprint"] == columns.fingerprint


def test_sites_that_show_no_rows_make_one_file_of_theirs(tmp_path):
    found, whole, made = patients.rows(), tmp_path / "whole.json", tmp_path / "made.json"
    flags = ("--label", "outcome", "--owner", "hospital")
    for name in patients.HOSPITALS:
        patients.write(tmp_path / f"{name}.csv", [row for row in found if row["hospital"] == name])
        run("data", "columns", tmp_path / f"{name}.csv", *flags, "--out", tmp_path / f"{name}.json")
    run("data", "columns", *sorted(tmp_path.glob("*.json")), "--out", made)
    run("data", "columns", *sorted(tmp_path.glob("*.csv")), *flags, "--out", whole)
    one, other = read_columns(made), read_columns(whole)
    assert (one.target, one.owner, one.rows) == (other.target, "hospital", 120)
    for mine, theirs in zip(one.columns, other.columns, strict=True):
        assert (mine.name, mine.kind, mine.categories) == (theirs.name, theirs.kind, theirs.categories)
        assert (mine.missing, mine.embedded) == (theirs.missing, theirs.embedded)
        assert mine.mean == pytest.approx(theirs.mean, rel=0.02)
        assert mine.deviation == pytest.approx(theirs.deviation, rel=0.02)


def test_a_site_of_one_class_writes_columns_that_are_for_training_with_those_of_others(tmp_path):
    found, sites = patients.rows(), []
    for kind in ("ill", "well"):
        path = patients.write(tmp_path / f"{kind}.csv", [row for row in found if row["outcome"] == kind])
        sites.append(tmp_path / f"{kind}.json")
        told = run("data", "columns", path, "--label", "outcome", "--out", sites[-1]).stdout
        assert f"Not for training yet: its label outcome has one class only, '{kind}'" in told
    flags = ("--data", tmp_path / "ill.csv", "--clients", 2, "--horizon", 1, "--runs", tmp_path, "--name", "one")
    refused = run("simulate", *flags, "--set", f"data.columns={sites[0]}", code=2).stderr
    assert "its label outcome has one class only, 'ill': make one file of it and those of sites" in refused
    assert "Not for training" not in run("data", "columns", *sites, "--out", tmp_path / "all.json").stdout
    assert read_columns(tmp_path / "all.json").target.classes == ("ill", "well")
    run("simulate", *flags, "--set", f"data.columns={tmp_path / 'all.json'}")


def test_a_table_is_measured_by_what_is_named(table, tmp_path):
    flags = ("--data", table, "--label", "outcome", "--clients", 3, "--horizon", 1, "--runs", tmp_path)
    told = run("simulate", *flags, "--metrics", "AUC, f1", "--name", "one").stdout
    assert "AUROC, higher is better: on each client's own test data" in told
    done = Run.open(tmp_path / "one")
    assert done.config["task"]["metrics"] == "auroc,f1"
    assert done.measure.name == "auroc"
    assert done.number("f1") is not None
    for given, word in {
        "auroc,acuracy": "task.metrics = 'auroc,acuracy': 'acuracy' is not known: did you mean accuracy? There are",
        "f1,auc,f1": "task.metrics = 'f1,auc,f1': f1 is there twice",
        "rmse": "rmse",
    }.items():
        assert word in run("simulate", *flags, "--metrics", given, "--name", "two", code=2).stderr
    own = ("--task", "tests.runtime.tasks:numbers", "--metrics", "mae")
    assert "brings its metrics, by Task(metric=...); leave one of them out" in run("simulate", *own, code=2).stderr


def test_a_peer_says_what_it_needs(table, tmp_path):
    common = ("--listen", "127.0.0.1:7001", "--state", tmp_path / "state")
    assert "TASK: is needed (or --data FILE" in run("peer", *common, code=2).stderr
    assert "--columns FILE: is needed with --data" in run("peer", "--data", table, *common, code=2).stderr


def test_names_in_a_table_are_harmless_on_a_terminal(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("x,[/b]y\n" + "".join(f"{at % 5},{'a' if at % 2 else chr(27) + '[31m'}\n" for at in range(30)))
    told = run("data", "describe", path, "--label", "[/b]y", "--clients", 2).output
    assert "\x1b[31m" not in told
    assert "[/b]y is a class" in told
