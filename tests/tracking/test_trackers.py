"""Trackers write what a run says, and it can be read back with the tracker's own tools."""

import sys
import time

import pytest

from pushcen.errors import OptionError
from pushcen.tracking import Many, trackers

CONFIG = {"clients": 3, "method": {"name": "pushcen", "clusters": 8}}
ROWS = [
    {"time": 0.5, "accuracy": 0.25, "loss": None, "clients": {"0": 0.25}, "mass_exact": True},
    {"time": 1.0, "accuracy": 0.75, "loss": 0.5, "clients": {"0": 0.75}, "mass_exact": True},
]


def tell(observer, rows=ROWS, start=0.0, status="finished"):
    observer.started({"horizon": 1.0, "time": start})
    for row in rows:
        observer.progress({"time": row["time"], "horizon": 1.0, "events": 1, "bytes_sent": 1})
        observer.evaluated(row)
    observer.ended({"status": status, "flops": 3.0})


def events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder / "tensorboard"), purge_orphaned_data=True)
    found.Reload()
    return found


def test_tensorboard_reads_every_figure_back(tmp_path):
    tell(Many(trackers(["tensorboard"], tmp_path, CONFIG)))
    found = events(tmp_path)
    assert [(e.step, e.value) for e in found.Scalars("accuracy")] == [(500, 0.25), (1000, 0.75)]
    assert [(e.step, e.value) for e in found.Scalars("loss")] == [(1000, 0.5)]
    assert b"clusters" in found.Tensors("config/text_summary")[0].tensor_proto.string_val[0]


def test_tensorboard_forgets_what_a_resumed_run_writes_again(tmp_path):
    tell(Many(trackers(["tensorboard"], tmp_path, CONFIG)))
    tell(Many(trackers(["tensorboard"], tmp_path, CONFIG)), [ROWS[1] | {"accuracy": 0.5}], start=0.5)
    assert [(e.step, e.value) for e in events(tmp_path).Scalars("accuracy")] == [(500, 0.25), (1000, 0.5)]


def test_mlflow_reads_every_figure_back_from_its_files(tmp_path, monkeypatch):
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    folder = tmp_path / "runs" / "first"
    folder.mkdir(parents=True)
    tell(Many(trackers(["mlflow"], folder, CONFIG)), ROWS[:1], status="interrupted")
    from mlflow.tracking import MlflowClient

    client = MlflowClient((tmp_path / "runs" / "mlruns").as_uri())
    [run] = client.search_runs([client.get_experiment_by_name("pushcen").experiment_id])
    assert (run.info.run_name, run.info.status) == ("first", "KILLED")
    tell(Many(trackers(["mlflow"], folder, CONFIG)), ROWS[1:], start=0.5)
    [run] = client.search_runs([run.info.experiment_id])
    assert run.info.status == "FINISHED"
    assert run.data.params["method.clusters"] == "8"
    history = client.get_metric_history(run.info.run_id, "accuracy")
    assert sorted((m.step, m.value) for m in history) == [(500, 0.25), (1000, 0.75)]


def test_wandb_writes_its_own_files_without_a_network(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    tell(Many(trackers(["wandb"], tmp_path, CONFIG)))
    [log] = tmp_path.glob("wandb/offline-run-*/*.wandb")
    assert (tmp_path / "wandb_run").read_text() in log.name
    deadline = time.monotonic() + 60
    while b"flops" not in log.read_bytes() and time.monotonic() < deadline:  # another process writes it
        time.sleep(0.1)
    for word in (b"accuracy", b"0.75", b"flops", b"clusters"):
        assert word in log.read_bytes()


def test_a_tracker_of_ones_own_hears_of_everything(tmp_path, monkeypatch):
    (tmp_path / "my_tracker.py").write_text(
        "from pushcen.simulation import Quiet\n"
        "class Mine(Quiet):\n"
        "    heard = []\n"
        "    def __init__(self, folder, config):\n        self.heard.append((folder.name, config['clients']))\n"
        "    def evaluated(self, row):\n        self.heard.append(row['accuracy'])\n"
        "class NoObserver:\n    def __init__(self, folder, config): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    tell(Many(trackers(["my_tracker:Mine"], tmp_path, CONFIG)))
    assert sys.modules["my_tracker"].Mine.heard == [(tmp_path.name, 3), 0.25, 0.75]
    with pytest.raises(OptionError, match="is no observer: it has no started, progress, evaluated, ended"):
        trackers(["my_tracker:NoObserver"], tmp_path, CONFIG)


def test_a_tracker_whose_package_is_missing_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.delitem(sys.modules, "pushcen.tracking.wandb", raising=False)
    with pytest.raises(OptionError, match=r"pip install 'pushcen\[wandb\]' brings it"):
        trackers(["wandb"], tmp_path, CONFIG)
