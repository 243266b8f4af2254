"""What real peers say of themselves becomes a record as any other: in order, bounded, and checked when it is read."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from pushcen.errors import RunError
from pushcen.folder import read_status
from pushcen.measure import ACCURACY, Measure
from pushcen.runtime.looking import PeerView
from pushcen.runtime.status import NeighbourStatus, Status
from pushcen.watch import Watch, network, write_page
from pushcen.watch.network import NetworkRecord
from tests.watch.browser import chromium, needs_chromium, open_page, until

__all__ = ["chromium", "open_page"]
UNIT = 1 << 40
HOSTILE = '<img src=x onerror="document.title=1"></script>'


def view(name, *facts, now=100.0, neighbours=("ann", "bob"), **status):
    others = [NeighbourStatus(name=one, state="answers") for one in neighbours if one != name]
    said = Status(
        time=now, started=1.0, peer=f"{name}/1", phase="training", method="pushcen", version="1.0", received=now,
        certificate_end=now + 86_400 * 9.5, neighbours=others, **{"bytes_out": 600, "events": 3, **status},
    )  # fmt: skip
    return PeerView(name, 7, len(facts), now, 2 * UNIT, UNIT, 0, ACCURACY, said, [list(fact) for fact in facts])


def merges(time, *merged, score=0.5, events=1):
    return ("m", time, events, str(UNIT), list(merged), score, 1.25)


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def record(tmp_path, clock):
    made = NetworkRecord(tmp_path / "net", clock=lambda: clock[0])
    yield made
    made.close()


def whole(tmp_path):
    [update] = Watch([tmp_path / "net"]).whole()
    return update


def test_peers_with_clocks_of_their_own_are_told_in_one_order(record, clock, tmp_path):
    ann = view("ann", merges(96.0), ("s", 97.0, "bob", 200, "news"), now=100.0)
    bob = view("bob", ("a", 7297.2, "ann", 200, True), merges(7298.0, "ann", 5000, 300), now=7300.0)
    record.take({"h:1": ann, "h:2": bob})
    update = whole(tmp_path)
    assert [(event[0], event[1], event[2]) for event in update["events"]] == [("m", 0, 0), ("s", 1, 0), ("m", 2, 1)]
    [[*_, merged]] = [event for event in update["events"] if event[0] == "m" and event[5]]
    assert [merged[0], merged[2]] == [0, 5000]
    assert update["events"][2][3] - merged[1] == 300, "milliseconds that it waited"
    head = update["facts"]["head"]
    assert (head["names"], head["seconds"], head["founded"]) == (["ann", "bob"], True, str(2 * UNIT))
    assert [row["time"] for row in update["rows"]] == [0, 2]
    assert update["rows"][-1]["bytes_sent"] == 400 + 200 + 600
    assert update["states"][-1]["book"] | {"near": True} == update["states"][-1]["book"]


def test_what_only_the_receiver_tells_is_a_push_of_the_other(record, tmp_path):
    record.take({"h:1": view("ann", ("a", 99.0, "cid", 50, True))})
    update = whole(tmp_path)
    names = update["facts"]["head"]["names"]
    assert names == ["ann", "bob", "cid"]
    assert [event[2] for event in update["events"] if event[0] == "s"] == [names.index("cid")]
    assert [peer["asked"] for peer in update["facts"]["peers"]] == [True, False, False]


def test_who_comes_later_widens_the_record_and_who_looks_begins_anew(record, clock, tmp_path):
    record.take({"h:1": view("ann", merges(99.0), neighbours=())})
    watch = Watch([tmp_path / "net"])
    [first] = watch.more()
    assert first["facts"]["head"]["clients"] == 1
    clock[0] += 5
    record.take({"h:1": view("ann", now=105.0, neighbours=("bob",)), "h:2": view("bob", merges(104.0), now=105.0)})
    [second] = watch.more()
    assert second["anew"] is True
    assert second["facts"]["head"]["clients"] == 2
    assert [state["online"] for state in second["states"]] == ["10", "11"]
    assert second["states"][0]["held"].split() == [str(UNIT), "-"]


def test_nothing_is_later_than_now_or_before_what_was_told(record, clock, tmp_path):
    record.take({"h:1": view("ann", merges(50.0), merges(99.0))})
    clock[0] += 1
    record.take({"h:1": view("ann", merges(-1e15), merges(1e15), now=101.0)})
    times = [event[1] for event in whole(tmp_path)["events"]]
    assert times == sorted(times)
    assert times[-1] <= 51.0


def test_one_that_falls_silent_is_seen_and_keeps_its_mass(record, clock, tmp_path):
    for say in (view("ann"), "UNAVAILABLE: refused", view("ann", now=102.0)):
        record.take({"h:1": say, "h:2": view("bob", now=clock[0] - 900)})
        clock[0] += 1
        if isinstance(say, str):
            [wrong, *_] = whole(tmp_path)["facts"]["peers"][0]["problems"]
            assert wrong[:2] == ["critical", "it does not answer: UNAVAILABLE: refused"]
            assert whole(tmp_path)["states"][-1]["book"]["held"] == str(2 * UNIT)
    visits = [event[2:] for event in whole(tmp_path)["events"] if event[0] == "p"]
    assert visits == [[0, "falls silent"], [0, "answers again"]]


def test_a_record_is_bounded_and_goes_on(record, clock, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "KEPT", 20)
    watch = Watch([tmp_path / "net"])
    for at in range(50):
        now = 100.0 + at
        record.take({"h:1": view("ann", merges(now - 0.5, events=at), now=now)})
        clock[0] += 1
        watch.more()
    update = whole(tmp_path)
    assert 20 <= len(update["events"]) <= 40
    assert update["facts"]["head"]["since"] == update["events"][0][1] > 0
    assert update["events"][-1][1] == pytest.approx(49, abs=0.01)
    assert watch.more() == []


def test_a_metric_that_is_called_time_changes_none(record, tmp_path):
    record.take({"h:1": replace(view("ann", merges(99.0, score=1e300)), measure=Measure("time"))})
    assert [row["time"] for row in whole(tmp_path)["rows"]] == [0.0]


def test_one_that_lies_spoils_no_page(record, tmp_path):
    facts = [("s", 99.0, "bob", 2**53 - 1, "news")] * 3 + [merges(99.0, "bob", 10_000, 2**53 - 1, score=1e300)]
    huge = dict.fromkeys(("bytes_out", "events", "boot", "bytes_in", "models"), 2**62)
    said = view("ann", *facts, neighbours=(HOSTILE, "bob"), refusals={"rate": 2**62}, **huge)
    said = replace(said, status=replace(said.status, method=HOSTILE, certificate_end=1e18))
    record.take({"h:1": said, "h:2": view("bob", merges(99.5))})
    update = whole(tmp_path)
    assert update["facts"]["head"]["names"] == ["ann", "bob"]
    assert update["facts"]["peers"][0]["events"] == 2**53 - 1
    assert update["look"]["label"].startswith("<img")


def test_names_are_bounded(record, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "MOST_PEERS", 5)
    facts = [("s", 99.0, f"eve-{at}", 1, "news") for at in range(50)]
    record.take({"h:1": view("ann", *facts)})
    update = whole(tmp_path)
    assert update["facts"]["head"]["clients"] == 5
    assert len([event for event in update["events"] if event[0] == "s"]) == 3


@pytest.mark.parametrize(
    "text", ["", "[]", '{"peers": 3, "silent": {}}', '{"peers": [3], "silent": {}}', "[" * 100_000,
             '{"peers": [{"name": 3}], "silent": {}}', '{"peers": [{"events": -1}], "silent": {}}',
             '{"peers": [{"problems": [["<b>", "", ""]]}], "silent": {}}', '{"peers": [{"refusals": 3}], "silent": {}}']
)  # fmt: skip
def test_a_hostile_list_of_peers_is_refused(record, tmp_path, text):
    record.take({"h:1": view("ann")})
    (tmp_path / "net" / "record" / "peers.json").write_text(text)
    with pytest.raises(RunError, match=r"peers\.json: is no list of peers"):
        whole(tmp_path)


RUN = "import sys, time; from pathlib import Path; from pushcen.folder import Folder; f = Folder(Path(sys.argv[1]))\n"
RUN += "with f.opened(): f.write_status('running'); print('there', flush=True); time.sleep(600)\n"


def test_a_run_that_was_killed_was_interrupted(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", RUN, str(tmp_path)], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline() == b"there\n"
        assert read_status(tmp_path) == "running"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert read_status(tmp_path) == "interrupted"


def test_a_run_on_another_machine_runs_as_long_as_it_shows_that(tmp_path):
    (tmp_path / "status.json").write_text('{"status": "running"}')
    (tmp_path / "lock").write_text("another-machine")
    assert read_status(tmp_path) == "running"
    then = time.time() - 3600
    for name in ("status.json", "lock"):
        os.utime(tmp_path / name, (then, then))
    assert read_status(tmp_path) == "interrupted"
    (tmp_path / "lock").unlink()
    assert read_status(tmp_path) == "interrupted"


@pytest.fixture
def shown(record, clock, tmp_path):
    """A page of three peers, of which one is not well, and another says what would be HTML."""
    ann = view(
        "ann", ("p", 90.0, "joins"), merges(95.0, "bob", 2500, 1500), ("s", 96.0, "bob", 200, "doubt"),
        ("r", 97.0, "eve", "rate"), ("w", 98.0, HOSTILE, "warning"), ("x", 98.5, "bob", 5000),
        refusals={"rate": 3, HOSTILE: 1}, neighbours=("bob", "eve"),
    )  # fmt: skip
    bob = view("bob", merges(96.0, "ann", 1000, 10, score=0.75), waits_for=HOSTILE)
    bob = replace(bob, status=replace(bob.status, version=HOSTILE))
    record.take({"h:1": ann, "h:2": bob, "h:3": HOSTILE})
    write_page(Watch([tmp_path / "net"]), tmp_path / "page.html")
    return (tmp_path / "page.html").as_uri()


@needs_chromium
def test_the_page_shows_peers_by_name_with_what_is_wrong_and_all_text_stays_text(shown, open_page):
    page = open_page(shown)
    until(page, "document.querySelectorAll('#peers tbody tr').length === 2")
    first, second = page.locator("#peers tbody tr").all_text_contents()
    assert "9 days left" in first
    assert "rate: 3" in first
    assert "it waits for its disk" in second
    assert HOSTILE in second
    assert HOSTILE in page.text_content("#peers-note")
    page.click("#peers tbody button >> nth=1")
    until(page, "document.querySelector('#card h3')?.textContent === 'bob'")
    assert "75.0 %" in page.text_content("#card")
    page.select_option("#log-kind", "r")
    until(page, "document.querySelector('#log').textContent.includes('ann refuses eve: rate')")
    page.select_option("#log-kind", "")
    page.fill("#log-client", "ann")
    until(page, "document.querySelector('#log').textContent.includes('ann moves towards bob by an exchange (50.0 %)')")
    assert page.evaluate("page.replay.share[page.replay.cell(0, 1)]") == pytest.approx(0.75)
    assert page.text_content("#book-sum").startswith("nearly")
    assert page.title() == "pushcen"
    assert page.evaluate("document.images.length") == 0
    assert page.said == []


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_light_and_dark(shown, open_page, scheme):
    page = open_page(shown, color_scheme=scheme)
    texts = page.evaluate((Path(__file__).parent / "contrast.js").read_text())
    assert len(texts) > 50
    assert [found for found in texts if found[1] < 4.5] == []


@needs_chromium
@pytest.mark.slow
def test_a_network_on_this_machine_is_seen_while_it_runs_and_can_be_watched_again(open_page, tmp_path):
    folder = tmp_path / "net"
    command = [sys.executable, "-m", "pushcen", "up", "--peers", "3", "--events", "6", "--folder", str(folder)]
    with (tmp_path / "said").open("wb") as said:
        process = subprocess.Popen([*command, "--watch", "--no-browser"], stdout=said, stderr=said)
    try:
        end = time.monotonic() + 300
        while "the page: " not in (text := (tmp_path / "said").read_text()):
            assert time.monotonic() < end, text
            time.sleep(0.2)
        page = open_page(text.split("the page: ")[1].split()[0], wait="page.shown && page.shown.real")
        for _ in range(10):  # a minute each
            try:
                until(page, "page.shown.facts.status === 'finished' && page.shown.rows.length > 0")
                break
            except AssertionError:
                assert process.poll() is None, (tmp_path / "said").read_text()
        assert page.evaluate("page.shown.head.names") == ["p0", "p1", "p2"]
        until(page, "page.shown.events.filter(event => event[0] === 'm').length === 18")
        assert page.evaluate("page.shown.states.at(-1).online") == "111"
        assert page.evaluate("page.shown.events.some(event => event[0] === 'm' && event[5].length > 0)")
        assert page.said == []
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)
    [again] = Watch([folder]).whole()
    assert again["facts"]["status"] == "finished"
    assert [peer["events"] for peer in again["facts"]["peers"]] == [6, 6, 6]
    assert json.loads((folder / "summary.json").read_text())["world"] == "real"
