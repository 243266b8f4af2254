"""What a run writes down of itself: exact, the same bytes whatever interrupts it, and never too much."""

import json
import math
from collections import Counter

import pytest

from pushcen import record
from pushcen.methods import AdPsgd, Independent, PushCen
from pushcen.protocol import UNIT
from pushcen.simulation import (
    EvaluationOptions,
    MeterOptions,
    NetworkOptions,
    RecordOptions,
    recorder,
)
from tests.simulation.test_determinism import EVERYTHING, WORLDS, Stops
from tests.simulation.worlds import run, world


def lines(folder, name):
    return [json.loads(line) for line in (folder / "record" / name).read_text().splitlines()]


def rows(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def states(folder):
    return [line for line in lines(folder, "states.jsonl")[1:] if "failed" not in line]


@pytest.mark.parametrize("name", ["plain", "everything", "farewells", "lean, narrow", "sgp"])
def test_the_book_adds_up_to_the_quantum_and_says_what_the_metrics_say(tmp_path, name):
    run(tmp_path, **{"horizon": 4.0, **WORLDS[name]})
    found = states(tmp_path)
    assert [state["t"] for state in found] == [row["time"] for row in rows(tmp_path)]
    for state, row in zip(found, rows(tmp_path), strict=True):
        book = {name: int(quanta) for name, quanta in state["book"].items() if name != "exact"}
        founded = book.pop("founded")
        assert sum(book.values()) == founded
        assert state["book"]["exact"] is row["mass_exact"] is True
        assert book["held"] / founded == row["mass_held"]
        assert (book["waiting"] + book["folded"]) / founded == row["mass_waiting"]
        assert book["under_way"] / founded == row["mass_under_way"]
        assert sum(map(int, state["held"].split())) <= book["held"]  # those that left have some, too
        assert sum(map(int, state["waiting"].split())) == book["waiting"] + book["folded"]


def test_without_the_meter_of_mass_the_book_is_the_same(tmp_path):
    for name, meters in (("with", ("mass",)), ("without", ())):
        run(tmp_path / name, **EVERYTHING | {"horizon": 3.0, "meters": MeterOptions(meters)})
    assert states(tmp_path / "with") == states(tmp_path / "without")


def test_a_mailbox_that_evicts_folds(tmp_path):
    run(tmp_path, method=PushCen(clusters=4, receivers=5, limit=1), horizon=3.0)
    assert any(int(state["book"]["folded"]) for state in states(tmp_path))


def test_events_have_all_that_was_merged_and_sent(tmp_path):
    summary = run(tmp_path, horizon=4.0)
    head, *events = lines(tmp_path, "events.jsonl")
    merged, pushed = ([event for event in events if event[0] == kind] for kind in "ms")
    assert (head["every"], head["since"], head["founded"]) == (1, 0.0, str(8 * UNIT))
    assert len(merged) == summary["steps"]
    assert {event[2]: event[4] for event in pushed} == dict(enumerate(states(tmp_path)[-1]["sent"]))
    assert sum(sum(event[5][1::2]) for event in pushed) == summary["traffic"]["bytes_sent"]
    for _, _, client, born, held, models in merged:
        assert int(held) >= 0
        assert 0 < sum(models[2::3]) < 10_000 or not models
        assert client not in models[::3]
        assert all(0 < sent <= born for sent in models[1::3])
    sent = {(event[2], event[3], receiver) for event in pushed for receiver in event[5][::2]}
    used = {
        (sender, made, event[2]) for event in merged for sender, made in zip(event[5][::3], event[5][1::3], strict=True)
    }
    assert used <= sent


@pytest.mark.parametrize("latency", [0.0, 0.3])
def test_every_loss_is_there(tmp_path, latency):
    network = NetworkOptions(loss=0.3, latency=latency, duplicate=0.2 if latency else 0.0)
    summary = run(tmp_path, horizon=4.0, network=network)
    events = lines(tmp_path, "events.jsonl")[1:]
    counts = Counter(event[0] for event in events)
    lost = counts["l"] if latency else sum(len(event[6]) for event in events if event[0] == "s")
    assert lost == summary["traffic"]["messages_lost"] > 0
    assert (counts["a"] > 0, counts["d"] > 0) == (latency > 0, latency > 0)


def test_coming_and_going(tmp_path):
    run(tmp_path, horizon=6.0, participation=EVERYTHING["participation"])
    head, *events = lines(tmp_path, "events.jsonl")
    visits = [event for event in events if event[0] == "p"]
    late = {client: time for _, time, client, how in visits if how == "joins" and time > 0}
    assert late == {int(client): time for client, time in head["joins"].items()}
    assert {how for *_, how in visits} == {"joins", "leaves", "returns", "crashes", "is repaired"}
    online = set()
    for _, _, client, how in visits:
        (online.add if how in ("joins", "returns", "is repaired") else online.remove)(client)
    assert states(tmp_path)[-1]["online"] == "".join("01"[client in online] for client in range(8))


def test_clients_have_their_accuracy(tmp_path):
    run(tmp_path, horizon=2.0, evaluation=EvaluationOptions(per_client=True))
    for state, row in zip(states(tmp_path), rows(tmp_path), strict=True):
        assert state["metric"] == [round(row["clients"][str(client)], 5) for client in range(8)]


def test_a_method_that_moves_no_mass_has_no_book(tmp_path):
    run(tmp_path, horizon=2.0, method=Independent())
    assert lines(tmp_path, "events.jsonl")[0]["founded"] is None
    assert "book" not in states(tmp_path)[0]


def test_it_can_be_turned_off_and_is_no_part_of_what_a_run_is(tmp_path):
    without = world(record=RecordOptions(events=0))
    assert without.identity() == world().identity()
    run(tmp_path / "off", horizon=2.0, record=RecordOptions(events=0))
    run(tmp_path / "on", horizon=2.0)
    assert not (tmp_path / "off" / "record").exists()
    assert rows(tmp_path / "off") == rows(tmp_path / "on")


def test_of_many_events_every_nth_is_there(tmp_path):
    summary = run(tmp_path, horizon=6.0, network=NetworkOptions(latency=0.2, loss=0.1), record=RecordOptions(events=20))
    head, *events = lines(tmp_path, "events.jsonl")
    every = head["every"]
    assert every == math.ceil(summary["steps"] / 20) or every > 1
    merged = [event for event in events if event[0] == "m"]
    assert len(merged) == summary["steps"] // every
    assert len(merged) <= 25
    for kind, at in (("m", 3), ("s", 3), ("a", 4), ("l", 4)):
        assert all(event[at] % every == 0 for event in events if event[0] == kind)


def test_of_many_clients_only_some_evaluations_are_there_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder, "STATES_IN_ALL", 24)
    run(tmp_path, horizon=6.0)
    assert ["held" in state for state in states(tmp_path)] == [False, True, False, True, False, True]


@pytest.mark.parametrize("broken", ["on", "off first", "files gone", "damaged"])
def test_a_run_goes_on_whatever_became_of_its_record(tmp_path, broken):
    options = {"horizon": 4.0, **EVERYTHING}
    run(tmp_path / "straight", **options)
    first = RecordOptions(0) if broken == "off first" else RecordOptions()
    run(tmp_path / "broken", observer=Stops(2), record=first, **options)
    if broken == "files gone":
        (tmp_path / "broken" / "record" / "events.jsonl").unlink()
    if broken == "damaged":
        [state] = (tmp_path / "broken" / "checkpoint").glob("*/state.json")
        saved = json.loads(state.read_text())
        saved["engine"]["recorder"]["sizes"] = [1, "2"]
        state.write_text(json.dumps(saved))
    run(tmp_path / "broken", resume=True, **options)
    one, other = lines(tmp_path / "straight", "events.jsonl"), lines(tmp_path / "broken", "events.jsonl")
    since = other[0]["since"]
    assert (since > 0) == (broken != "on")
    assert other[1:] == [line for line in one[1:] if line[1] > since] if since else other == one
    if since:
        assert other[0]["online"]


def test_a_file_that_is_full_stays_as_it_is(tmp_path, monkeypatch):
    run(tmp_path / "straight", horizon=4.0)
    monkeypatch.setattr(record, "LARGEST", 2_000)
    run(tmp_path / "full", horizon=4.0, observer=Stops(2))
    run(tmp_path / "full", horizon=4.0, resume=True)
    full, straight = ((tmp_path / name / "record" / "events.jsonl").read_bytes() for name in ("full", "straight"))
    assert 2_000 <= len(full) < 2_300
    assert straight.startswith(full)


def test_the_head_has_how_labels_are_distributed(tmp_path):
    run(tmp_path, horizon=1.0)
    head = lines(tmp_path, "events.jsonl")[0]
    assert len(head["labels"]) == 2
    assert [sum(counts) for counts in zip(*head["labels"], strict=True)] == head["samples"]


def test_exchanges_are_there_as_influence(tmp_path):
    summary = run(tmp_path, horizon=3.0, method=AdPsgd())
    moved = [line for line in lines(tmp_path, "events.jsonl")[1:] if line[0] == "x"]
    exchanges = summary["exchanges"]
    assert len(moved) == exchanges["answered"] + exchanges["completed"] > 0
    assert all(line[2] != line[3] and line[4] == 5000 for line in moved)
