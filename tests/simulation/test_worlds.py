"""What the world does to clients, and that no mass is lost or made whatever it does."""

import math

import pytest

from pushcen.errors import OptionError
from pushcen.learning import Task
from pushcen.methods import AsyncDFedAvg, Independent, PushCen, PushCenLean, PushSum, Swift
from pushcen.protocol import UNIT, audit
from pushcen.simulation import (
    ComputeOptions,
    EvaluationOptions,
    MeterOptions,
    NeighbourOptions,
    NetworkOptions,
    ParticipationOptions,
    Quiet,
    simulate_world,
)
from pushcen.simulation.executors import Host
from pushcen.simulation.executors.threads import Threads
from pushcen.simulation.jobs import Build
from pushcen.simulation.reference import parts
from tests.simulation.worlds import run, task, world

NETWORKS = {
    "instant": NetworkOptions(),
    "late": NetworkOptions(latency=0.3, jitter=0.3, bandwidth=2000),
    "narrow, with nothing left over": NetworkOptions(bandwidth=300, jitter=0.1, backlog=False, loss=0.1),
    "out of order, twice": NetworkOptions(jitter=0.1, duplicate=0.3, reorder=0.3),
    "lost, noticed at once": NetworkOptions(loss=0.3),
    "lost, noticed late": NetworkOptions(loss=0.3, latency=0.2, duplicate=0.2),
    "in doubt at once": NetworkOptions(loss=0.3, notice="doubt"),
    "in doubt, late": NetworkOptions(loss=0.3, notice="doubt", latency=0.2, jitter=0.2, duplicate=0.2),
    "lost silently": NetworkOptions(loss=0.3, notice="silent", latency=0.1),
}
PEOPLE = {
    "all there": ParticipationOptions(),
    "churn": ParticipationOptions(churn=0.5, stay=1, away=0.5),
    "farewells": ParticipationOptions(churn=0.5, stay=1, away=0.5, farewell=True),
    "crashes": ParticipationOptions(crashes=0.5, between=1, repair=0.3, delayed=0.25, earliest=0.5, latest=1),
}


class Book(Quiet):
    """Takes a run apart while it goes on."""

    def __init__(self):
        self.rows = []

    def started(self, info):
        self.info = info

    def evaluated(self, row):
        self.rows.append(row)


METHODS = {
    "pushcen": PushCen(clusters=4, receivers=3, limit=4),
    "lean": PushCenLean(renew_after=48, receivers=3, limit=4),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("people", PEOPLE)
@pytest.mark.parametrize("network", NETWORKS)
def test_no_mass_is_lost_or_made(network, people, method, world_of):
    collect = ["end", "start"][(len(network) + len(people)) % 2]  # each about as often
    options = {"network": NETWORKS[network], "participation": PEOPLE[people], "collect": collect}
    options["method"] = METHODS[method]
    engine = world_of(clients=12, horizon=20.0, **options)
    acts = 0
    while not engine.over:
        engine.act()
        acts += 1
        if acts % 20 == 0:
            found = audit([node.peer.save() for node in engine.nodes] + engine.presence.left)
            assert found.violations == []
            assert found.missing == {}
            assert found.held + found.on_links == found.founded == 12 * UNIT - sum(n.late for n in engine.nodes) * UNIT
            assert sum(part.mass for part in parts(engine)) == found.founded  # by another way, model by model
    assert acts > 200
    assert engine.steps > 100


@pytest.mark.parametrize("notice", ["sure", "doubt"])
def test_what_is_lost_comes_home_when_the_network_is_well_again(notice, world_of):
    """Rule 17, in the engine: serving unsettled links alone brings everything home."""
    engine = world_of(network=NetworkOptions(loss=0.5, notice=notice), horizon=3.0)
    while not engine.over:
        engine.act()
    assert _stranded(engine) > 0 or notice == "sure"
    engine.network._loss = 0.0
    engine.world.__dict__["horizon"] = 30.0
    while not engine.over and _stranded(engine):
        engine.act()
    assert _stranded(engine) == 0


def test_a_leaver_hands_all_its_mass_over_and_returns_with_none(world_of):
    people = ParticipationOptions(churn=1.0, stay=1.0, away=0.2, farewell=True)
    engine = world_of(participation=people, network=NetworkOptions(latency=0.1), horizon=20.0)
    while not engine.over:
        engine.act()
    assert engine.presence.left, "nobody left"
    assert all(state["held"] == 0 for state in engine.presence.left)
    later = [node.peer for node in engine.nodes if not node.peer.me.endswith("/1")]
    assert later
    assert all(peer.founded == 0 for peer in later)


def test_a_crash_loses_the_mailbox_and_no_mass(world_of):
    engine = world_of(horizon=3.0)
    while not engine.over:
        engine.act()
    node = next(node for node in engine.nodes if node.peer.waiting)
    engine.presence.crash(node.index)
    assert node.peer.waiting == 0
    assert _stranded(engine) > 0
    engine.presence.repaired(node.index)  # it says hello, and its senders serve it again
    engine.world.__dict__["horizon"] = 30.0
    while not engine.over and _stranded(engine):
        engine.act()
    assert _stranded(engine) == 0


def test_late_joiners_bring_no_mass_and_catch_up():
    book = Book()
    people = ParticipationOptions(delayed=0.25, earliest=2, latest=3)
    summary = run(observer=book, participation=people, horizon=6.0)
    assert len(book.info["join_times"]) == 2
    late = book.info["join_times"].values()
    assert [row["online"] for row in book.rows] == [8 - sum(time > row["time"] for time in late) for row in book.rows]
    assert summary["delayed"]["clients"] == 2
    assert summary["delayed"]["best"] >= summary["final"]["delayed_accuracy"] > 0.5


def test_join_times_come_from_a_table(tmp_path):
    table = tmp_path / "joins.json"
    table.write_text('{"2": 1.5, "0": 0.25}')
    book = Book()
    run(observer=book, participation=ParticipationOptions(joins=str(table)), horizon=2.0)
    assert book.info["join_times"] == {0: 0.25, 2: 1.5}
    assert [row["online"] for row in book.rows] == [7, 8]
    for text, complaint in (
        ("[]", "must be an object"),
        ("{", "must be a JSON"),
        ('{"9": 1}', "from 0 to 7"),
        ('{"1": -1}', "0 or more"),
    ):
        table.write_text(text)
        with pytest.raises(OptionError, match=complaint):
            run(participation=ParticipationOptions(joins=str(table)))


def test_if_everybody_joins_late_the_first_to_come_begin(tmp_path):
    table = tmp_path / "joins.json"
    table.write_text('{"0": 1, "1": 0.5, "2": 0.5}')
    summary = run(clients=3, participation=ParticipationOptions(joins=str(table)), horizon=4.0)
    assert summary["meters"]["mass"]["exact"]
    assert summary["final"]["online"] == 3
    assert summary["traffic"]["messages_sent"] > 0


@pytest.mark.parametrize("method", [PushCen(clusters=4), AsyncDFedAvg(), Independent()])
def test_one_client_alone_trains_and_sends_nothing(method):
    summary = run(clients=1, method=method, horizon=2.0)
    assert summary["status"] == "finished"
    assert summary["steps"] > 3
    assert summary["traffic"]["messages_sent"] == 0
    assert summary["final"]["accuracy"] > 0.5


def test_a_client_whose_neighbours_are_all_offline_keeps_its_mass(tmp_path):
    table = tmp_path / "joins.json"
    table.write_text('{"1": 100, "2": 100}')
    summary = run(clients=3, participation=ParticipationOptions(joins=str(table)), horizon=2.0)
    assert summary["meters"]["mass"]["mass_held"] == 1
    assert summary["traffic"]["messages_sent"] == 0


def test_a_horizon_before_the_first_event_evaluates_the_models_that_all_start_from():
    summary = run(horizon=0.05)
    assert summary["steps"] == 0
    assert summary["final"]["time"] == 0.05
    assert summary["final"]["online"] == 8
    assert summary["final"]["train_loss"] is None
    assert run(horizon=0)["final"]["time"] == 0


def test_the_last_row_is_at_the_horizon():
    book = Book()
    run(observer=book, evaluation=EvaluationOptions(every=0.4), horizon=1.0)
    assert [row["time"] for row in book.rows] == [0.4, 0.8, 1.0]


def test_collecting_at_the_start_uses_what_was_there_then(world_of):
    """With one event's time of latency nothing else can differ: who collects at the end sees one push more."""
    found = {}
    for collect in ("end", "start"):
        engine = world_of(
            clients=2,
            collect=collect,
            compute=ComputeOptions("constant"),
            horizon=1.0,
            method=PushSum(receivers=1, full_after=0),
        )
        while not engine.over:
            engine.act()
        found[collect] = [node.peer.held / UNIT for node in engine.nodes]
    assert found == {"end": [0.5, 0.75], "start": [0.5, 0.5]}


def test_compute_times_follow_their_models(world_of):
    engines = {
        kind: world_of(compute=ComputeOptions(kind, classes=(1.0, 5.0)), horizon=3.0)
        for kind in ("steps", "constant", "classes", "heavy")
    }
    steps = [node.facts.steps for node in engines["steps"].nodes]
    assert [node.pace for node in engines["steps"].nodes] == [0.1 * count for count in steps]
    assert {node.pace for node in engines["constant"].nodes} == {1.0}
    assert {round(node.pace / (0.1 * count)) for node, count in zip(engines["classes"].nodes, steps, strict=True)} == {
        1,
        5,
    }
    rng = engines["heavy"].nodes[0].client.rng
    times = [engines["heavy"].world.compute.time(1.0, rng) for _ in range(500)]
    assert min(times) >= 1
    assert max(times) > 5


def test_a_bandwidth_sends_one_message_after_the_other(world_of):
    engine = world_of(network=NetworkOptions(bandwidth=1000.0, latency=0.5), horizon=10.0)
    while engine.steps == 0:
        engine.act()
    [node] = [node for node in engine.nodes if node.events]
    size = node.facts.sizes[0]
    arrivals = [time for time, _, _, event in engine.queue.entries() if event.kind == "deliver"]
    assert arrivals == pytest.approx([engine.now + 0.5 + (place + 1) * size / 1000 for place in range(3)])


def test_without_a_backlog_what_has_not_begun_to_leave_is_replaced():
    """A line that takes a message in two events carries about half a message an event, and none that is old."""
    size = run(method=PushSum(receivers=3), horizon=1.0)["traffic"]["bytes_sent"]
    narrow = {"bandwidth": 600.0, "latency": 0.01}
    found = {
        backlog: run(method=PushSum(receivers=3), horizon=8.0, network=NetworkOptions(**narrow, backlog=backlog))
        for backlog in (True, False)
    }
    assert size > 0
    sent = {backlog: one["traffic"]["bytes_sent"] for backlog, one in found.items()}
    clients = found[False]["clients"]
    assert sent[False] <= clients * 8.0 * 600.0 + clients * 3 * 2000, "no more than lines carry, and a last push"
    assert sent[True] > 2 * sent[False]
    assert all(one["meters"]["mass"]["exact"] for one in found.values())
    stale = {backlog: one["meters"]["events"]["tau"] for backlog, one in found.items()}
    assert stale[False] < stale[True]


def test_what_may_not_be_combined_with_no_backlog_is_refused():
    with pytest.raises(OptionError, match="backlog = False: only where bandwidth is limited"):
        NetworkOptions(backlog=False)
    with pytest.raises(OptionError, match="backlog = False: must be True where notice = 'silent'"):
        NetworkOptions(backlog=False, bandwidth=1.0, notice="silent")


def test_messages_under_way_are_not_sent_again():
    """Latency alone makes no extra traffic: an answer that can still come is waited for."""
    instant = run(method=PushSum(receivers=3), horizon=4.0)
    late = run(method=PushSum(receivers=3), horizon=4.0, network=NetworkOptions(latency=0.7))
    assert late["traffic"]["messages_sent"] == instant["traffic"]["messages_sent"]


def test_ctrl_c_within_the_only_workers_task_ends_at_once():
    def make(client):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Threads(Host(make), 1).submit(0, [Build()])


def test_swift_without_a_graph_is_refused():
    with pytest.raises(OptionError, match="needs a fixed graph"):
        run(method=Swift())


@pytest.mark.parametrize("graph", ["ring", "star", "exponential", "k-out", "small-world", "complete"])
def test_pushes_follow_the_graph(graph, world_of):
    engine = world_of(neighbours=NeighbourOptions("graph", graph=graph, degree=2), horizon=1.5)
    while not engine.over:
        engine.act()
    for node in engine.nodes:
        assert {who.partition("/")[0] for who in node.peer.sent} <= set(engine.neighbours.edges[node.name])
    assert any(node.peer.sent for node in engine.nodes)


def test_worlds_are_compared_on_the_same_join_times_and_first_weights():
    people = ParticipationOptions(delayed=0.5, earliest=0.2, latest=0.9)
    books = [Book(), Book()]
    for book, method in zip(books, (PushCen(clusters=4), Independent()), strict=True):
        run(
            observer=book,
            method=method,
            participation=people,
            horizon=0.1,
            evaluation=EvaluationOptions(per_client=True),
        )
    assert books[0].info["join_times"] == books[1].info["join_times"]
    assert books[0].rows[0]["clients"] == books[1].rows[0]["clients"]


def test_no_test_data_is_no_figure():
    def untested(client, clients):
        made = task(client, clients)
        return Task(made.model, made.train)

    final = simulate_world(world(horizon=1.0), untested)["final"]
    assert final["accuracy"] is None
    assert final["loss"] is None
    assert final["train_loss"] > 0


@pytest.mark.parametrize(
    ("section", "complaint"),
    [
        (lambda: NetworkOptions(loss=1.5), "loss = 1.5: must be a number from 0 to 1"),
        (lambda: NetworkOptions(notice="maybe"), "notice = 'maybe': must be one of sure, doubt, silent"),
        (lambda: ComputeOptions(per_step=0), "per_step = 0: must be a number above 0"),
        (lambda: ComputeOptions(classes=()), "classes"),
        (
            lambda: ParticipationOptions(latest=1),
            "earliest = 10.0: must be at most latest = 1",
        ),
        (lambda: EvaluationOptions(every=True), "every = True: must be a number"),
        (lambda: MeterOptions(("mess",)), "names = 'mess': must be of mass"),
        (lambda: world(clients=0), "clients = 0: must be a whole number, 1 or more"),
        (lambda: world(collect="late"), "collect = 'late': must be one of end, start"),
        (lambda: world(horizon=math.inf), "horizon = inf"),
        (lambda: NeighbourOptions(bound=3), "bound = 3"),
        (
            lambda: (
                run(evaluation=EvaluationOptions(global_test=True))
                and simulate_world(world(evaluation=EvaluationOptions(global_test=True)), task)
            ),
            "no global test set",
        ),
    ],
)
def test_bad_options_name_the_key_and_what_is_right(section, complaint):
    with pytest.raises(OptionError) as caught:
        section()
    assert complaint in str(caught.value)


def _stranded(engine):
    """Mass that was sent and is not accepted, on links between peers that are known."""
    peers = {node.peer.me: node.peer for node in engine.nodes}
    return sum(
        sent - peers[who].answer(peer.me).accepted
        for peer in peers.values()
        for who, sent in peer.sent.items()
        if who in peers
    )
