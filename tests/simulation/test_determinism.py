"""The same seed gives the same bytes, however many workers there are, and after whatever interruption."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pushcen.errors import RunError
from pushcen.learning import PerClientOptions, ScheduleOptions, SparsityOptions, TrainingOptions
from pushcen.methods import (
    A2Cid2,
    AdPsgd,
    AsyncDFedAvg,
    Choco,
    DivShare,
    DPsgd,
    DSpodFL,
    FedKD,
    Moniqua,
    PushCen,
    PushCenLean,
    PushSum,
    QuantizedPushSum,
    Rasgp,
    Sgp,
    SpaFL,
    Swift,
    SwiftRandom,
)
from pushcen.simulation import (
    METERS,
    CheckpointOptions,
    ComputeOptions,
    EvaluationOptions,
    ExecutorOptions,
    MeterOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    Quiet,
    StalenessOptions,
)
from tests.simulation.worlds import norm_task, plain, run

EVERYTHING = {
    "meters": MeterOptions(METERS),
    "evaluation": EvaluationOptions(global_test=True, reference=True, per_client=True),
    "network": NetworkOptions(latency=0.2, jitter=0.3, loss=0.1, notice="doubt", duplicate=0.1, reorder=0.1),
    "participation": ParticipationOptions(
        delayed=0.25, earliest=1, latest=2, churn=0.25, stay=1, away=0.5, crashes=0.25, between=1
    ),
}
TRAINING = TrainingOptions(
    optimiser="rmsprop", lr=1e-2, clip=1.0, micro_batch=5, label_smoothing=0.1, options={"centered": True},
    groups=({"match": "2.*", "lr": 0.02},), schedule=ScheduleOptions("cosine", unit="steps", over=50, warm_up=5),
    per_client=PerClientOptions(epochs=(1, 2), batch="8..16", lr="0.001..0.02"),
)  # fmt: skip
FOLDED = PushCenLean(bits=1, renew_after=32, receivers=3, limit=2)
WORLDS = {
    "plain": {},
    "everything": EVERYTHING,
    "everything, collected at the start": {**EVERYTHING, "collect": "start"},
    "farewells": {
        "participation": ParticipationOptions(churn=0.5, stay=1, away=0.5, farewell=True),
        "collect": "start",
    },
    "every message": {"method": PushCen(clusters=4, receivers=3, limit=3, newest_only=False)},
    "lean": {"method": PushCenLean(bits=1, renew_after=32, receivers=3), **EVERYTHING},
    "lean, farewells": {
        "method": PushCenLean(bits=1, renew_after=32, receivers=3),
        "participation": ParticipationOptions(churn=0.5, stay=1, away=0.5, farewell=True),
    },
    "lean, folded": {"method": FOLDED, **EVERYTHING},
    "all of training": {"training": TRAINING, **EVERYTHING},
    "lean, narrow": {
        "method": PushCenLean(bits=1, renew_after=16, receivers=3),
        "network": NetworkOptions(bandwidth=300, jitter=0.1, backlog=False, loss=0.1),
    },
    "swift": {"method": Swift(), "neighbours": NeighbourOptions(kind="graph", degree=2)},
    "quantized push-sum": {
        "method": QuantizedPushSum(),
        "neighbours": NeighbourOptions(kind="graph", degree=2),
        "network": NetworkOptions(latency=0.3),
        "collect": "start",
    },
    "rasgp": {
        "method": Rasgp(),
        "neighbours": NeighbourOptions(kind="graph", degree=2),
        "network": EVERYTHING["network"],
        "collect": "start",
    },
    "d-psgd": {
        "method": DPsgd(),
        "neighbours": NeighbourOptions(kind="graph", degree=2),
        "network": NetworkOptions(latency=0.3),
    },
    "choco, collected at the start": {
        "method": Choco(),
        "neighbours": NeighbourOptions(kind="graph", degree=4),
        "network": NetworkOptions(bandwidth=3000),
        "collect": "start",
    },
    "moniqua": {
        "method": Moniqua(theta=0.05, bits=3),
        "neighbours": NeighbourOptions(kind="graph", degree=4),
        "network": NetworkOptions(latency=0.1),
    },
    "moniqua, nobody waits": {
        "method": Moniqua(theta=0.05, rounds=False),
        "neighbours": NeighbourOptions(kind="graph", degree=4),
        "network": NetworkOptions(latency=0.1),
    },
    "ad-psgd": {"method": AdPsgd(), **EVERYTHING},
    "a2cid2": {"method": A2Cid2(), "neighbours": NeighbourOptions(kind="graph", degree=2), **EVERYTHING},
    "dspodfl": {
        "method": DSpodFL(),
        "neighbours": NeighbourOptions(kind="graph", degree=2),
        "participation": ParticipationOptions(churn=0.5, stay=1, away=0.5, farewell=True),
    },
    "spafl": {"method": SpaFL(receivers=3), **EVERYTHING},
    "fedkd": {"method": FedKD(receivers=3, rise_over=3), **EVERYTHING},
    "sgp": {"method": Sgp(limit=2, overlap=True, receivers=3), **EVERYTHING},
    "divshare": {
        "method": DivShare(parts=3, receivers=2),
        "neighbours": NeighbourOptions(kind="view", size=4, bound=6),
    },
    "by priority": {"neighbours": NeighbourOptions(policy="priority"), **EVERYTHING},
    "by a bandit": {"neighbours": NeighbourOptions(policy="bandit"), **EVERYTHING},
    "by a bandit, farewells": {
        "method": DivShare(parts=3, receivers=2),
        "neighbours": NeighbourOptions(policy="bandit", kind="view", size=4, bound=6),
        "participation": ParticipationOptions(churn=0.5, stay=1, away=0.5, farewell=True),
    },
    "weighed by age": {
        "method": SwiftRandom(receivers=2),
        "staleness": StalenessOptions(half_life=0.5, oldest=1.5),
        **EVERYTHING,
    },
    "folded by age": {
        "method": AsyncDFedAvg(receivers=3, limit=2, mass="keep"),
        "staleness": StalenessOptions(half_life=0.5, oldest=1.5),
        **EVERYTHING,
    },
    "not far ahead": {
        "staleness": StalenessOptions(ahead=2),
        "compute": ComputeOptions(kind="classes"),
        **EVERYTHING,
        "collect": "start",
    },
    "sparse, narrow": {
        "method": PushSum(receivers=3),
        "sparsity": SparsityOptions(first=0.6, last=0.05, over=6),
        "network": NetworkOptions(bandwidth=3000, jitter=0.1, backlog=False, loss=0.1),
    },
    "sparse, on a graph": {
        "method": Swift(),
        "neighbours": NeighbourOptions(kind="graph", degree=2),
        "sparsity": SparsityOptions(first=0.6, last=0.05, over=6),
    },
}


def files(folder):
    summary = json.loads((folder / "summary.json").read_text())
    written = ("metrics.jsonl", "record/events.jsonl", "record/states.jsonl")
    return plain(summary), *((folder / name).read_bytes() for name in written)


def test_any_number_of_threads_gives_the_same_bytes(tmp_path):
    options = {**EVERYTHING, "horizon": 3.0, "function": norm_task}
    found = [run(tmp_path / str(n), workers=n, **options) and files(tmp_path / str(n)) for n in (1, 4)]
    assert found[0] == found[1]


@pytest.mark.parametrize("optimiser", ["rmsprop", "adafactor"])
def test_clients_that_train_differently_are_the_same_on_any_number_of_threads(tmp_path, optimiser):
    training = replace(TRAINING, optimiser=optimiser, options={})
    options = {**EVERYTHING, "horizon": 3.0, "training": training}
    found = [run(tmp_path / str(n), workers=n, **options) and files(tmp_path / str(n)) for n in (1, 4)]
    assert found[0] == found[1]


def test_references_are_the_same_on_any_number_of_threads(tmp_path):
    options = {**EVERYTHING, "horizon": 4.0, "method": PushCenLean(bits=1, renew_after=32, receivers=3)}
    found = [run(tmp_path / str(n), workers=n, **options) and files(tmp_path / str(n)) for n in (1, 4)]
    assert found[0] == found[1]
    assert found[0][0]["traffic"]["reference_bytes"] > 0


@pytest.mark.parametrize("name", ["by priority", "by a bandit", "not far ahead", "sparse, narrow"])
def test_options_that_any_method_takes_are_the_same_on_any_number_of_threads(name):
    options = {"horizon": 3.0, **WORLDS[name]}
    assert plain(run(workers=1, **options)) == plain(run(workers=4, **options)) != plain(run(horizon=3.0, workers=1))


@pytest.mark.parametrize("seed", [3, 4])
def test_another_seed_is_another_run(seed):
    assert (plain(run(horizon=1.0, seed=3)) == plain(run(horizon=1.0, seed=seed))) == (seed == 3)


class Stops(Quiet):
    """Presses Ctrl-C when so many rows are there."""

    def __init__(self, rows):
        self.rows = rows

    def evaluated(self, row):
        self.rows -= 1
        if self.rows == 0:
            os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("name", WORLDS)
def test_an_interrupted_run_ends_in_the_same_bytes(tmp_path, name):
    options = {"horizon": 4.0, **WORLDS[name], "workers": 2}
    run(tmp_path / "straight", **options)
    first = run(tmp_path / "broken", observer=Stops(2), **options)
    assert first["status"] == "interrupted"
    assert json.loads((tmp_path / "broken" / "status.json").read_text())["status"] == "interrupted"
    assert not (tmp_path / "broken" / "summary.json").exists()
    assert run(tmp_path / "broken", resume=True, **options)["status"] == "finished"
    assert files(tmp_path / "broken") == files(tmp_path / "straight")


def test_a_run_notes_when_each_row_was_there_unless_it_was_resumed(tmp_path):
    times = run(tmp_path / "straight", horizon=4.0)["times"]
    rows = (tmp_path / "straight" / "metrics.jsonl").read_text().splitlines()
    assert len(times["rows"]) == len(rows)
    assert 0 <= times["rows"][0] <= times["rows"][-1] <= times["run"] + 0.001
    assert times["rows"] == sorted(times["rows"])
    run(tmp_path / "broken", horizon=4.0, observer=Stops(2))
    assert "rows" not in run(tmp_path / "broken", horizon=4.0, resume=True)["times"]


PROGRAM = """
import sys
from pushcen.simulation import CheckpointOptions
from tests.simulation.test_determinism import EVERYTHING
from tests.simulation.worlds import run
run(sys.argv[1], resume=True, checkpoint=CheckpointOptions(0.05), horizon=float(sys.argv[2]), **EVERYTHING)
"""


def start(folder, horizon):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), str(horizon)], env=environment, cwd=Path(__file__).parents[2]
    )


def written(file):
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def kill_and_resume(folder, kills, seed, horizon, mark="checkpoint/current"):
    """Kill a run as often as this, each time at a random moment after it has written `mark`; then let it end."""
    rng = random.Random(seed)
    checkpoints = set()
    for _ in range(kills):
        process = start(folder, horizon)
        before = written(folder / mark)
        while process.poll() is None and written(folder / mark) == before:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.5)
        process.kill()
        process.wait()
        current = folder / "checkpoint" / "current"
        if current.exists():
            checkpoints.add(current.read_text())
        for line in (folder / "metrics.jsonl").read_text().splitlines()[:-1]:
            json.loads(line)
    process = start(folder, horizon)
    assert process.wait() == 0
    return checkpoints


def test_kill_9_leaves_a_folder_that_resumes_to_the_same_bytes(tmp_path):
    run(tmp_path / "straight", horizon=8.0, **EVERYTHING)
    assert kill_and_resume(tmp_path / "killed", kills=1, seed=1, horizon=8.0)  # it went on from a checkpoint
    assert files(tmp_path / "killed") == files(tmp_path / "straight")


@pytest.mark.slow
def test_kill_9_again_and_again(tmp_path):
    run(tmp_path / "straight", horizon=40.0, **EVERYTHING)
    kill_and_resume(tmp_path / "early", kills=3, seed=0, horizon=40.0, mark="status.json")
    assert files(tmp_path / "early") == files(tmp_path / "straight")
    for seed in range(3):
        assert len(kill_and_resume(tmp_path / str(seed), kills=5, seed=seed, horizon=40.0)) > 1
        assert files(tmp_path / str(seed)) == files(tmp_path / "straight")


@pytest.mark.parametrize("method", [None, FOLDED])
def test_checkpoints_change_nothing(tmp_path, method):
    run(tmp_path / "often", method=method, checkpoint=CheckpointOptions(0), horizon=2.0)
    run(tmp_path / "seldom", method=method, horizon=2.0)
    assert files(tmp_path / "often") == files(tmp_path / "seldom")


def test_who_looks_changes_nothing():
    """Folded messages owe their references; whoever adds them up for a figure leaves the sum as it is."""
    looks = {"evaluation": EvaluationOptions(reference=True), "meters": MeterOptions(METERS)}
    blind, seen = (run(method=FOLDED, horizon=4.0, **options)["final"] for options in ({}, looks))
    assert blind.items() <= seen.items()


def test_a_finished_run_that_is_resumed_stays_as_it_is(tmp_path):
    run(tmp_path, horizon=2.0)
    before = files(tmp_path)
    run(tmp_path, resume=True, horizon=2.0)
    assert files(tmp_path) == before


def test_a_folder_is_not_written_over_nor_resumed_as_another_world(tmp_path):
    run(tmp_path, horizon=1.0)
    with pytest.raises(RunError, match="has a run in it already"):
        run(tmp_path, horizon=1.0)
    with pytest.raises(RunError, match="another world: horizon, seed differ"):
        run(tmp_path, resume=True, horizon=2.0, seed=5)


def test_two_processes_do_not_write_into_one_folder(tmp_path):
    class Greedy(Quiet):
        def started(self, info):
            run(tmp_path, resume=True, horizon=1.0)

    with pytest.raises(RunError, match="another process is running in this folder"):
        run(tmp_path, observer=Greedy(), horizon=1.0)


@pytest.mark.parametrize("damage", ["cut", "not json", "no learner", "no checkpoint", "no rows"])
def test_a_damaged_checkpoint_is_refused(tmp_path, damage):
    run(tmp_path, horizon=1.0)
    [checkpoint] = [path for path in (tmp_path / "checkpoint").iterdir() if path.is_dir()]
    state = checkpoint / "state.json"
    if damage == "cut":
        state.write_text(state.read_text()[:-100])
    elif damage == "not json":
        state.write_text("[]")
    elif damage == "no learner":
        (checkpoint / "learners-0.safetensors").write_bytes(b"\xff" * 100)
    elif damage == "no checkpoint":
        (tmp_path / "checkpoint" / "current").write_text("../../etc")
    else:
        (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(RunError):
        run(tmp_path, resume=True, horizon=1.0)


@pytest.mark.slow
def test_a_ray_cluster_of_two_nodes_gives_the_same_bytes(tmp_path):
    pytest.importorskip("ray")
    program = "import sys; from tests.simulation.test_determinism import on_two_nodes; on_two_nodes(sys.argv[1])"
    command = [sys.executable, "-c", program, str(tmp_path)]  # Ray forks, which threads of this one may not bear
    assert subprocess.run(command, cwd=Path(__file__).parents[2], check=False).returncode == 0


def on_two_nodes(folder):
    import ray
    from ray.cluster_utils import Cluster

    place = Path(folder)
    cluster = Cluster()
    try:
        for _ in range(2):
            cluster.add_node(num_cpus=1, include_dashboard=False)
        ray.init(address=cluster.address, log_to_driver=False)
        assert len(ray.nodes()) == 2
        options = {**EVERYTHING, "horizon": 3.0, "function": norm_task}
        run(place / "threads", workers=2, **options)
        run(place / "ray", executor=ExecutorOptions("ray", workers=2), **options)
        assert files(place / "ray") == files(place / "threads")
        first = run(place / "moved", executor=ExecutorOptions("ray", workers=2), observer=Stops(1), **options)
        assert first["status"] == "interrupted"
        run(place / "moved", workers=1, resume=True, **options)  # from the cluster to this process
        assert files(place / "moved") == files(place / "threads")
        for name in ("lean, folded", "a2cid2"):
            options = {**WORLDS[name], "horizon": 3.0}
            run(place / name, workers=2, **options)
            run(place / f"{name} ray", executor=ExecutorOptions("ray", workers=2), **options)
            assert files(place / f"{name} ray") == files(place / name)
    finally:
        ray.shutdown()
        cluster.shutdown()
