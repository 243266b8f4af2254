"""Tables as tasks: what they learn, what they refuse, and what peers with other columns hear."""

import json

import pytest
import torch

from pushcen.config import load_config
from pushcen.data import DataError
from pushcen.errors import ConfigError, OptionError, PushcenError
from pushcen.learning import Learner, TrainingOptions, Work, build_task
from pushcen.methods import PushCen
from pushcen.runs import Run, launch
from pushcen.runs.forecast import forecast
from pushcen.runtime.fingerprint import describe, difference
from pushcen.runtime.setup import peer_config
from pushcen.tasks import DataOptions, ImageTask, TableTask
from tests.data import patients

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
QUICK = {"horizon": 1.0, "participation.delayed": 0.0}


@pytest.fixture
def table(tmp_path):
    return str(patients.write(tmp_path / "patients.csv", patients.rows(300)))


def learner(task, client=0, clients=1):
    return Learner(build_task(task, client, clients), training=TrainingOptions(epochs=20, lr=0.01), seed=1)


def test_a_class_is_learnt(table):
    one = learner(TableTask(DataOptions(table, label="outcome")))
    one.step(Work(own=1, models=[]))
    assert one.evaluate().metric > 0.75


def test_a_number_is_learnt_in_its_own_unit(table):
    one = learner(TableTask(DataOptions(table, label="days")))
    one.step(Work(own=1, models=[]))
    inputs, targets = one.task.test[:]
    errors = (one.model.eval()(inputs) - targets).abs()
    assert targets.mean() > 8
    assert errors.median() < 0.6
    assert one.evaluate().others[0] > 0.7  # of the variance, R2


def test_a_run_has_as_many_clients_as_owners_unless_it_says_otherwise(table):
    own = {"data.source": table, "data.label": "outcome", "data.owner": "hospital"}
    assert load_config("digits", own).clients == 3
    assert load_config({}, own).clients == 3
    assert load_config("digits", own).data.partition == "natural"
    with pytest.raises(DataError, match="clients = 4: the data names 3 owners, so there must be 3"):
        TableTask(load_config("digits", own | {"clients": 4}).data).divided(4)


def test_a_run_of_a_table_goes_on_and_is_written_down(table, tmp_path):
    config = load_config("digits", QUICK | {"data.source": table, "data.label": "outcome", "data.owner": "hospital"})
    run = launch(config, tmp_path / "run")
    assert run.finished
    assert load_config(Run.open(tmp_path / "run").config) == config
    assert run.config["task"]["model"] == "mlp"
    assert launch(config, tmp_path / "run").finished


def test_the_number_of_workers_changes_no_byte(table, tmp_path):
    own = QUICK | {"data.source": table, "data.label": "days", "clients": 4}
    for workers in (1, 2):
        launch(load_config("digits", own | {"executor.workers": workers}), tmp_path / str(workers))
    one, two = ((tmp_path / name / "metrics.jsonl").read_bytes() for name in ("1", "2"))
    assert one == two


def test_options_of_tables_are_no_part_of_a_config_that_has_none():
    plain = load_config("digits").plain()["data"]
    assert {"label", "owner", "target", "columns", "size", "augment"} & set(plain) == set()


def about(task):
    one = Learner(build_task(task, 0, 1), PushCen().update())
    return describe(PushCen(), TrainingOptions(), one, seed=0)


def columns(path, table, **changed):
    """Write the columns of a table, with one of them changed."""
    task = TableTask(DataOptions(table, label="outcome"))
    task.divided(1).data.columns.write(path)
    plain = json.loads(path.read_text())
    del plain["fingerprint"]
    for column in plain["columns"]:
        if column["name"] in changed:
            column.update(changed[column["name"]])
    path.write_text(json.dumps(plain))
    return DataOptions(table, columns=str(path))


def test_peers_with_other_columns_are_told_which(table, tmp_path):
    one = about(TableTask(columns(tmp_path / "a.json", table)))
    same = about(TableTask(columns(tmp_path / "b.json", table)))
    other = about(TableTask(columns(tmp_path / "c.json", table, age={"mean": 40.0})))
    assert one == same
    assert difference(one, other).startswith("task.column.age = number ")
    assert {key for key in one if one[key] != other[key]} == {"task.column.age"}


def test_a_task_without_facts_has_the_fingerprint_that_it_always_had():
    assert not [key for key in about(ImageTask()) if key.startswith("task.")]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"data.label": "outcom"}, "data.label = 'outcom': "),
        ({"data.owner": "hospitl", "data.label": "outcome"}, "data.owner = 'hospitl': "),
        ({"data.target": "classes"}, "data.target = 'classes': must be one of class, number"),
        ({"data.label": "sex", "data.target": "number"}, "column sex, row 1: 'f': must be a number"),
        ({"data.label": "outcome", "data.size": 8}, "data.size = 8: is for images; data.source = "),
        ({"data.label": "outcome", "data.augment": "flip"}, "data.augment = 'flip': is for images"),
        ({"data.label": "outcome", "task.model": "cnn"}, "task.model = 'cnn': must be one of mlp"),
        ({"data.label": "outcome", "data.columns": "nowhere"}, "data.columns = 'nowhere': no such file"),
        (
            {"data.owner": "hospital", "data.partition": "iid"},
            "data.partition = 'iid': must be natural where data.owner",
        ),
        ({"data.source": "digits", "data.label": "outcome"}, "data.label = 'outcome': is for tables"),
        ({"data.source": "digits", "task.model": "mlp"}, "task.model = 'mlp': must be one of cnn, lenet, resnet18"),
        ({}, "data.label = '': must name the column to learn. It has age, sex"),
    ],
)
def test_what_is_refused_names_the_key_that_was_set(table, settings, said):
    with pytest.raises(PushcenError) as caught:
        forecast(load_config("digits", {"data.source": table} | settings))
    assert said in str(caught.value)


def test_a_peer_needs_no_task_beside_its_data(table):
    assert peer_config("", [f"data.source={table}", "data.label=outcome"]).task.model == "mlp"


def test_a_category_that_is_not_known_moves_nothing(table):
    one = learner(TableTask(DataOptions(table, label="outcome")))
    inputs = one.task.test[:1][0].clone()
    inputs[:, -1] = 0.0
    weights = one.model.eval().embeddings[0].weight
    before = one.model(inputs)
    with torch.no_grad():
        weights.add_(1.0)
    assert torch.equal(one.model(inputs), before)


def test_an_option_made_in_python_names_itself():
    with pytest.raises(OptionError, match="partition = 'iid': must be natural where owner = 'hospital'"):
        DataOptions("a.csv", partition="iid", owner="hospital")
    with pytest.raises(ConfigError, match=r"data.size = 1: must be a whole number from 2 to 1024"):
        load_config("digits", {"data.size": 1})
