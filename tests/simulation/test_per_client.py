"""Clients that train differently: by a list, a range or a function."""

import sys
from pathlib import Path

import pytest

from pushcen.config import ConfigError, load_config, parse_settings
from pushcen.errors import OptionError
from pushcen.folder import read_config
from pushcen.learning import PerClientOptions, TrainingOptions
from pushcen.runs import Run, launch
from pushcen.runs.forecast import forecast
from pushcen.simulation import Quiet
from pushcen.simulation.options.clients import client_training
from tests.simulation import worlds


def training(**per_client):
    return TrainingOptions(batch=16, lr=1e-2, per_client=PerClientOptions(**per_client))


def own(options, clients=8, seed=3):
    return [client_training(options, client, seed) for client in range(clients)]


def test_a_list_begins_again_where_it_ends():
    assert [one.epochs for one in own(training(epochs=[1, 2, 5]))] == [1, 2, 5, 1, 2, 5, 1, 2]


def test_a_range_is_drawn_from_by_the_seed():
    drawn = [one.epochs for one in own(training(epochs="2..4"), 100)]
    assert set(drawn) == {2, 3, 4}
    assert drawn == [one.epochs for one in own(training(epochs="2..4"), 100)]
    assert drawn != [one.epochs for one in own(training(epochs="2..4"), 100, seed=4)]


def test_learning_rates_are_drawn_alike_in_their_logarithm():
    drawn = [one.lr for one in own(training(lr="0.0001..0.1"), 400)]
    assert all(1e-4 <= lr <= 0.1 for lr in drawn)
    assert sum(lr < 1e-3 for lr in drawn) / 400 == pytest.approx(1 / 3, abs=0.08)


def test_one_range_moves_no_other():
    alone, both = own(training(lr="0.001..0.1")), own(training(lr="0.001..0.1", batch="4..32", epochs="1..9"))
    assert [one.lr for one in alone] == [one.lr for one in both]
    assert len({(one.batch, one.epochs) for one in both}) > 4


def test_a_function_is_asked_for_each_client(tmp_path, monkeypatch):
    Path(tmp_path / "per_client_mine.py").write_text(
        "import numpy as np\ndef epochs(client): return np.int64(1 + client)\n"
        "def none(client): return 1 // client\ndef zero(client): return 0\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert [one.epochs for one in own(training(epochs="per_client_mine:epochs"), 4)] == [1, 2, 3, 4]
    for name, said in {
        "none": r"'per_client_mine:none': client 0: ZeroDivisionError",
        "zero": r"'per_client_mine:zero': client 0: epochs = 0: must be a whole number, 1 or more",
        "number": r"'per_client_mine:number': 3 is no function",
        "gone": r"'per_client_mine:gone': module per_client_mine has no gone",
    }.items():
        with pytest.raises(OptionError, match=rf"training\.per_client\.epochs = {said}"):
            own(training(epochs=f"per_client_mine:{name}"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"epochs": [1, 0]}, "training.per_client.epochs = 0: must be a whole number, 1 or more"),
        ({"epochs": []}, "training.per_client.epochs = (): must be a list, a range such as"),
        ({"epochs": "1..2.5"}, "training.per_client.epochs = '1..2.5': must be a list, a range"),
        ({"epochs": "5..1"}, "training.per_client.epochs = '5..1': must not end below where it begins"),
        ({"batch": 3}, "training.per_client.batch = 3: must be a list, each a whole number, a text or nothing"),
        ({"lr": "0..1"}, "training.per_client.lr = 0.0: must be a number above 0"),
        ({"lr": "fast"}, "training.per_client.lr = 'fast': must be a list, a range"),
        ({"rate": [1]}, "training.per_client.rate = [1]: no such key"),
    ],
)
def test_what_cannot_be_is_said_of_the_key(values, said):
    with pytest.raises(ConfigError) as caught:
        load_config({"training": {"per_client": values}})
    assert said in str(caught.value)


class Paces(Quiet):
    def started(self, info):
        self.info = info


def test_steps_and_compute_time_follow():
    observer = Paces()
    worlds.run(observer=observer, training=training(epochs=[1, 3], batch=[8, 16, 16]), clients=4, horizon=1.0)
    samples = [48, 64, 80, 48]
    assert observer.info["steps"] == [samples[0] // 8, 3 * (samples[1] // 16), samples[2] // 16, 3 * (samples[3] // 8)]


VALUES = {
    "clients": 6,
    "horizon": 4.0,
    "task": {"function": "tests.simulation.worlds:task"},
    "training": {
        "optimiser": "RMSprop",
        "options": {"alpha": 0.9},
        "groups": [{"match": "0.*", "lr": 0.01}, {"match": "*.bias", "weight_decay": 0.1}],
        "schedule": {"kind": "step", "every": 2},
        "per_client": {"epochs": [1, 2], "lr": "0.001..0.01"},
    },
}


def test_a_folder_has_a_config_that_is_the_same_run(tmp_path):
    config = load_config(VALUES)
    first = launch(config, tmp_path)
    assert load_config(read_config(tmp_path)) == config
    assert Run.open(tmp_path).identity() == config.identity()
    assert launch(load_config(read_config(tmp_path)), tmp_path).rows == first.rows


def test_flags_say_the_same_as_a_file():
    flags = [
        "training.optimiser=rmsprop", "training.options.alpha=0.9", "training.schedule.kind=step",
        "training.groups=[{match='0.*', lr=0.01}, {match='*.bias', weight_decay=0.1}]", "training.schedule.every=2",
        "training.per_client.epochs=[1, 2]", "training.per_client.lr=0.001..0.01",
    ]  # fmt: skip
    values = {name: value for name, value in VALUES.items() if name != "training"}
    assert load_config(values, parse_settings(flags)) == load_config(VALUES)


def test_a_setting_does_not_reach_into_the_values_that_it_changes():
    values = {"training": {"options": {"eps": 1e-7}}}
    assert load_config(values, {"training.options.eps": 1e-6}).training.options == {"eps": 1e-6}
    assert values == {"training": {"options": {"eps": 1e-7}}}


def test_a_forecast_knows_each_clients_steps():
    config = load_config(VALUES)
    found = forecast(config)
    assert found.steps == [(1 + client % 2) * max(1, (48 + 16 * (client % 3)) // 32) for client in range(6)]


def test_a_run_of_the_defaults_is_the_run_that_knows_none_of_these_options():
    config = load_config({})
    values = config.plain()
    for name in ("clip", "micro_batch", "label_smoothing", "groups", "options", "schedule", "per_client"):
        del values["training"][name]
    assert type(config).identity_of(values) == config.identity()
