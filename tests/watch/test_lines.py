"""What is read from a record is checked line by line: what is wrong is refused whole, with file and line."""

import json
import os
import shutil
import threading

import pytest

from pushcen import record
from pushcen.errors import RunError
from pushcen.simulation import NetworkOptions
from pushcen.watch import Watch
from tests.simulation.test_determinism import EVERYTHING
from tests.simulation.worlds import run as simulated


def written(folder, name="events.jsonl"):
    return folder / "record" / name


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """The folder of a run in which everything happens, with a config as `pushcen simulate` writes it."""
    folder = tmp_path_factory.mktemp("runs") / "straight"
    make(folder, **EVERYTHING, horizon=3.0)
    return folder


def make(folder, **options):
    simulated(folder, **options)
    (folder / "config.toml").write_text('clients = 8\nseed = 3\n[method]\nname = "pushcen"\n')


@pytest.fixture
def run(straight, tmp_path):
    """A copy of that run, to be spoilt."""
    for file in (
        "config.toml",
        "metrics.jsonl",
        "summary.json",
        "status.json",
        "record/events.jsonl",
        "record/states.jsonl",
    ):
        (tmp_path / "run" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / file).write_bytes((straight / file).read_bytes())
    return tmp_path / "run"


def lines(file):
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_everything_that_a_run_wrote_comes_through(straight):
    [update] = Watch([straight]).whole()
    head, *events = lines(written(straight))
    assert update["events"] == events
    assert {key: value for key, value in head.items() if key != "version"} == update["facts"]["head"]
    assert update["states"] == lines(written(straight, "states.jsonl"))[1:]
    assert [row["time"] for row in update["rows"]] == [1.0, 2.0, 3.0]
    assert update["facts"]["status"] == "finished"
    assert update["look"]["label"] == "PushCen"


HOSTILE = {
    "not a list": '"p"',
    "nothing": "[]",
    "another kind": '["x",9,1,2]',
    "too short": '["p",9,1]',
    "no such client": '["p",9,8,"joins"]',
    "a client below zero": '["p",9,-1,"joins"]',
    "a client that is true": '["p",9,true,"joins"]',
    "a word of its own": '["p",9,1,"<script>"]',
    "a time that falls": '["p",0,1,"joins"]',
    "no time": '["p",null,1,"joins"]',
    "an endless time": '["p",1e999,1,"joins"]',
    "NaN": '["p",NaN,1,"joins"]',
    "a time of four hundred digits": f'["p",{"9" * 400},1,"joins"]',
    "a client of five thousand digits": f'["p",9,{"9" * 5000},"joins"]',
    "mass as a number": '["m",9,1,5,12,[]]',
    "mass as a word": '["m",9,1,5,"12a",[]]',
    "mass without end": f'["m",9,1,5,"{"9" * 5000}",[]]',
    "half a model": '["m",9,1,5,"12",[1,2]]',
    "a model of nobody": '["m",9,1,5,"12",[77,2,3]]',
    "a size that is no number": '["s",9,1,5,12,[1,"<b>"],[]]',
    "missed by nobody": '["s",9,1,5,12,[1,2],[99]]',
    "no JSON": "{",
    "not text": "\udcff",
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_event_is_refused_by_its_line(run, name):
    file = written(run)
    count = len(file.read_bytes().splitlines())
    with file.open("ab") as out:
        out.write(HOSTILE[name].encode(errors="surrogateescape") + b"\n")
    with pytest.raises(RunError, match=rf"events\.jsonl, line {count + 1}: "):
        Watch([run]).whole()


STATES = {
    "not an object": "[]",
    "no time": '{"steps": 1}',
    "a book of numbers": {"book": {"held": 1}},
    "too few clients": {"held": "1 2"},
    "other letters": {"online": "0123456x"},
    "a metric of four hundred digits": {"metric": [10**400] * 8},
    "a metric that is text": {"metric": ["<img src=x>"] * 8},
    "failed nobody": '{"t": 9, "failed": 8, "why": ""}',
    "failed for no reason": '{"t": 9, "failed": 1, "why": 3}',
}


@pytest.mark.parametrize("name", STATES)
def test_a_hostile_state_is_refused_by_its_line(run, name):
    file = written(run, "states.jsonl")
    last = [line for line in lines(file)[1:] if "held" in line][-1]
    line = STATES[name] if isinstance(STATES[name], str) else json.dumps(last | STATES[name])
    with file.open("a") as out:
        out.write(line + "\n")
    with pytest.raises(RunError, match=r"states\.jsonl, line \d+: "):
        Watch([run]).whole()


@pytest.mark.parametrize(
    "head", [{"version": 9}, {"clients": 10**9}, {"clients": 0}, {"horizon": "long"}, {"samples": []},
             {"joins": {"x": 1}}, {"joins": {"9" * 5000: 1}}, {"founded": 3}, {"every": 0}, {"online": [9]},
             {"since": -1}]
)  # fmt: skip
def test_a_hostile_head_is_refused(run, head):
    first, rest = written(run).read_text().split("\n", 1)
    written(run).write_text(json.dumps(json.loads(first) | head) + "\n" + rest)
    with pytest.raises(RunError, match=r"events\.jsonl, line 1: "):
        Watch([run]).whole()


def _pipe(file):
    file.unlink(missing_ok=True)
    os.mkfifo(file)


ODD = {
    "a figure of four hundred digits": lambda run: _put(run, "metrics.jsonl", f'{{"time": 9, "loss": {"9" * 400}}}\n'),
    "a summary of such": lambda run: _put(run, "summary.json", f'{{"times": {{"rows": [{"9" * 400}]}}}}'),
    "mass of such": lambda run: _put(run, "summary.json", f'{{"meters": {{"mass": {{"founded": {"9" * 400}}}}}}}'),
    "a status that is a pipe": lambda run: _pipe(run / "status.json"),
    "a lock that is a pipe": lambda run: (_put(run, "status.json", '{"status": "running"}'), _pipe(run / "lock")),
    "a record that is a folder": lambda run: (written(run).unlink(), written(run).mkdir()),
}
WRONG = {
    "a time of four hundred digits": ("metrics.jsonl", f'{{"time": {"9" * 400}}}\n'),
    "a time beyond all others": ("metrics.jsonl", '{"time": 1e300}\n'),
    "a time before all others": ("metrics.jsonl", '{"time": -1}\n'),
    "a config with a number without end": ("config.toml", f"clients = {'9' * 5000}"),
    "a summary with a number without end": ("summary.json", f'{{"x": {"9" * 5000}}}'),
}


def _put(run, name, text):
    (run / name).write_text(text)


@pytest.mark.parametrize("name", ODD)
def test_what_is_odd_in_a_folder_is_left_out(run, name):
    ODD[name](run)
    found = []
    reading = threading.Thread(target=lambda: found.extend(Watch([run]).whole()), daemon=True)  # which may never end
    reading.start()
    reading.join(30)
    [update] = found
    assert all("loss" not in row for row in update["rows"]) or "figure" not in name
    json.dumps(update, allow_nan=False)


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_in_a_folder_is_said_and_stops_no_other(run, straight, name):
    watch = Watch([run, straight])
    assert len(watch.more()) == 2
    _put(run, *WRONG[name])
    [hostile] = watch.more()
    assert hostile["run"] == 0
    assert str(run) in hostile["facts"]["error"]
    with pytest.raises(RunError):
        Watch([run]).whole()


def test_a_figure_that_is_too_large_to_be_drawn_is_not_shown(run):
    _put(run, "metrics.jsonl", '{"time": 1, "accuracy": 0.5, "loss": 1e305}\n')
    [update] = Watch([run]).whole()
    assert update["rows"] == [{"time": 1, "accuracy": 0.5}]


def test_a_file_that_is_too_large_is_not_read(run):
    with written(run).open("ab") as out:
        out.truncate(record.LARGEST + record.LONGEST + 1)  # a hole: nothing is allocated
    with pytest.raises(RunError, match="has 71,303,169 bytes, over"):
        Watch([run]).whole()


def test_a_line_that_is_too_long_is_not_parsed(run, monkeypatch):
    monkeypatch.setattr(record, "LONGEST", 1000)
    with written(run).open("a") as out:
        out.write('"' + "x" * 2000 + '"\n')
    with pytest.raises(RunError, match="2,002 bytes"):
        Watch([run]).whole()


def test_much_comes_in_pieces_and_all_of_it(run, monkeypatch):
    [whole] = Watch([run]).whole()
    monkeypatch.setattr(record, "CHUNK", 2_000)
    monkeypatch.setattr(record, "LONGEST", 1_500)
    watch = Watch([run])
    assert len(watch.more()[0]["events"]) < len(whole["events"])
    assert Watch([run]).whole() == [whole]


def test_a_run_that_grows_is_told_piece_by_piece(straight, run):
    events, metrics = (file.read_bytes().splitlines(keepends=True) for file in (written(run), run / "metrics.jsonl"))
    written(run).write_bytes(b"".join(events[:50]) + events[50][:7])
    (run / "metrics.jsonl").write_bytes(b"".join(metrics[:1]))
    (run / "summary.json").unlink()
    watch = Watch([run])
    [first] = watch.more()
    assert (len(first["events"]), len(first["rows"])) == (49, 1)
    assert watch.more() == []
    written(run).write_bytes(b"".join(events))
    (run / "metrics.jsonl").write_bytes(b"".join(metrics))
    [second] = watch.more()
    [whole] = Watch([straight]).whole()
    assert first["events"] + second["events"] == whole["events"]
    assert first["rows"] + second["rows"] == whole["rows"]
    assert "anew" not in second


def test_a_run_that_was_cut_back_begins_anew(run):
    watch = Watch([run])
    watch.whole()
    events = written(run).read_bytes().splitlines(keepends=True)
    written(run).write_bytes(b"".join(events[:30]))
    [again] = watch.more()
    assert again["anew"] is True
    assert len(again["events"]) == 29
    assert len(again["rows"]) == 3
    assert again["facts"]["head"]["clients"] == 8


def test_a_run_that_another_took_the_place_of_is_called_by_its_name(run):
    watch = Watch([run])
    assert watch.more()[0]["look"]["label"] == "PushCen"
    (run / "config.toml").write_text('clients = 8\nseed = 3\n[method]\nname = "divshare"\n')
    [update] = watch.more()
    assert update["look"]["label"] == "DivShare"


def test_runs_appear_later_and_one_that_is_damaged_stops_no_other(straight, run, tmp_path):
    watch = Watch([tmp_path])
    first = watch.more()
    assert [update["run"] for update in first] == [0]
    other = tmp_path / "another"
    make(other, horizon=1.0, network=NetworkOptions())
    (other / "config.toml").write_text('clients = 8\nseed = 3\n[method]\nname = "swift"\n')
    written(run).write_text("nonsense\n")
    found = {update["run"]: update for update in watch.more()}
    assert "events.jsonl, line 1: is not JSON" in found[0]["facts"]["error"]
    assert found[1]["look"]["label"] == "SWIFT"
    assert found[1]["events"]


def test_runs_with_equal_settings_are_told_apart_by_their_folders(straight, tmp_path):
    for name, method in {"one": "pushcen", "two": "pushcen", "three": "swift"}.items():
        shutil.copytree(straight, tmp_path / name)
        (tmp_path / name / "config.toml").write_text(f'clients = 8\n[method]\nname = "{method}"\n')
    watch = Watch([tmp_path / name for name in ("one", "two", "three")])
    assert [update["look"]["label"] for update in watch.more()] == ["PushCen, one", "PushCen, two", "SWIFT"]


def test_a_run_without_a_record_has_its_curves(run):
    for name in ("events.jsonl", "states.jsonl"):
        written(run, name).unlink()
    [update] = Watch([run]).whole()
    assert update["facts"]["head"] is None
    assert len(update["rows"]) == 3


def test_where_there_is_no_run_that_is_said(tmp_path):
    with pytest.raises(RunError, match="no run is there"):
        Watch([tmp_path]).whole()
