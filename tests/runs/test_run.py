"""Run folders are read as they are, and never trusted."""

import json
import math

import pytest

from pushcen.errors import RunError
from pushcen.runs import Run, find_runs
from tests.runs.made import make_run


def test_a_run_is_read_whole(tmp_path):
    run = Run.open(make_run(tmp_path / "a", clients=10, horizon=10))
    assert run.finished
    assert run.method == "pushcen"
    assert list(run.frame()["time"]) == [float(time) for time in range(11)]
    assert not [name for name in run.frame() if name.startswith("clients")]
    assert run.client_frame().shape == (11, 10)
    assert len(run.joins()) == 2
    client, joined = next(iter(run.joins().items()))
    assert min(run.client_series(client)[0]) == math.ceil(joined)
    assert run.client_frame()[client].first_valid_index() == math.ceil(joined)
    assert run.number("delayed.clients") == 2
    assert run.number("accuracy") == run.last["accuracy"]
    assert run.number("no.such.figure") is None


def test_a_run_that_goes_on_is_read_up_to_its_last_whole_line(tmp_path):
    folder = make_run(tmp_path / "a", finished=False)
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"time": 11.0, "accu')
    run = Run.open(folder)
    assert not run.finished
    assert run.last["time"] == 10.0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("not json\n", "line 2: is not JSON"),
        ('{"time": 1.0, "accu\n', "line 2: is not JSON"),
        ("[1, 2]\n", "line 2: must be an object with a time"),
        ('{"accuracy": 1}\n', "line 2: must be an object with a time"),
        ('{"time": "1"}\n', "line 2: must be an object with a time"),
        ('{"time": true}\n', "line 2: must be an object with a time"),
        ('{"time": NaN}\n', "line 2: must be an object with a time"),
        ('{"time": -1.0}\n', "line 2: must be an object with a time that does not fall"),
        ("[" * 100_000 + "\n", "line 2: is not JSON"),
    ],
)
def test_a_damaged_line_is_refused_with_its_number(tmp_path, line, said):
    folder = make_run(tmp_path / "a")
    (folder / "metrics.jsonl").write_text('{"time": 0.0}\n' + line + '{"time": 2.0}\n')
    with pytest.raises(RunError, match=said):
        Run.open(folder)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.toml", b"= 3", "config.toml"),
        ("config.toml", b"\xff\xfe", "config.toml: is not text"),
        ("summary.json", b"{", "summary.json: is not JSON"),
        ("summary.json", b"[]", "summary.json: must be a JSON object"),
        ("metrics.jsonl", b"\xff\xfe\n", "metrics.jsonl: is not text"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name(tmp_path, file, content, said):
    folder = make_run(tmp_path / "a")
    (folder / file).write_bytes(content)
    with pytest.raises(RunError, match=said):
        Run.open(folder)


def test_what_is_too_large_is_refused_before_it_is_read(tmp_path):
    folder = make_run(tmp_path / "a")
    with (folder / "config.toml").open("wb") as file:
        file.truncate(1 << 40)  # sparse: takes no room
    with pytest.raises(RunError, match="1,099,511,627,776 bytes, over 1,048,576"):
        Run.open(folder)


def test_numbers_that_are_none_are_left_out(tmp_path):
    folder = make_run(tmp_path / "a")
    rows = [
        {"time": 0.0, "loss": "low"},
        {"time": 1.0, "loss": True},
        {"time": 2.0, "loss": 1e400},
        {"time": 3, "loss": 2},
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert Run.open(folder).series("loss") == ([3], [2.0])


@pytest.mark.parametrize(
    "config", ["clients = 'x'", "clients = 3\nseed = 0\n[participation]\ndelayed = 7", "method = 3"]
)
def test_a_strange_config_hides_no_metrics(tmp_path, config):
    folder = make_run(tmp_path / "a")
    (folder / "config.toml").write_text(config)
    run = Run.open(folder)
    assert (run.joins(), run.method, len(run.rows)) == ({}, "unknown", 11)


def test_runs_are_found_below_a_folder_and_each_once(tmp_path):
    for name in ("x/a", "x/b", "y"):
        make_run(tmp_path / name)
    found = find_runs([tmp_path, tmp_path / "x" / "a"])
    assert sorted(run.folder.name for run in found) == ["a", "b", "y"]
    with pytest.raises(RunError, match="holds no run"):
        find_runs([tmp_path / "x" / "a" / "..", (tmp_path / "z").mkdir() or tmp_path / "z"])
