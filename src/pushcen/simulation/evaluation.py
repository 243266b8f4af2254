"""Observes the world: counts what compute events made, and makes the rows of the metrics. Changes nothing."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pushcen.errors import OptionError
from pushcen.learning import Outcome, Score, Work
from pushcen.measure import ACCURACY, written
from pushcen.protocol import Envelope
from pushcen.simulation import scores
from pushcen.simulation.client import TRAFFIC, SimulatedClient
from pushcen.simulation.executors import Ticket
from pushcen.simulation.jobs import Evaluate
from pushcen.simulation.meters import Meter, Reading, open_meters
from pushcen.simulation.reference import reference

if TYPE_CHECKING:
    from pushcen.simulation.engine import Engine

Row = dict[str, Any]


class Evaluator:
    """Evaluation, meters, and the running sums of what learners report."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._section = engine.world.evaluation
        self.measures = engine.nodes[0].facts.measures
        self.meters: list[Meter] = open_meters(engine)
        self._watching = [meter for meter in self.meters if meter.watches]
        if any(meter.measures for meter in self.meters):
            for node in engine.nodes:
                node.proxy.measures = True
        self.write: Callable[[Row], None] = lambda _: None
        self.flops = 0.0
        self.loss = [0.0, 0]  # since the last row: sum and count
        self.rows = 0
        self.last: Row | None = None
        self.best: Row | None = None  # of all rows, that with the best mean
        self.failures: dict[str, Row] = {}  # by client: how many events failed, why the first did, whether it trains

    def stepped(self, node: SimulatedClient, work: Work, envelopes: Sequence[Envelope], ticket: Ticket) -> None:
        """Note a compute event; what its learner reports is counted when it is there."""
        contexts = [meter.stepped(node, work, envelopes, ticket) for meter in self._watching]
        self._engine.collector.add((ticket,), self._collected, (node.name, self._engine.now, contexts))
        if self._engine.recorder is not None:
            self._engine.recorder.stepped(node, work, ticket)

    def pushed(self, node: SimulatedClient, envelopes: Sequence[Envelope], masses: Sequence[int]) -> None:
        """Note envelopes that belong to no compute event, and the new mass that each carries."""
        for meter in self._watching:
            meter.pushed(node, envelopes, masses)

    def lost(self, node: SimulatedClient) -> None:
        """Note that a client has lost what was folded."""
        for meter in self._watching:
            meter.lost(node)

    def evaluate(self) -> None:
        """Evaluate every client that is online, read the meters, and write a row when all figures are there."""
        engine, section = self._engine, self._section
        nodes = [node for node in engine.nodes if node.online]
        row: Row = {
            "time": engine.now,
            "online": len(nodes),
            "events": engine.events,
            "steps": engine.steps,
            "bytes_sent": sum(node.bytes_sent for node in engine.nodes),
            **written(self.measures),
        }
        readings = [self._evaluation(nodes, "own", None)]
        if section.global_test:
            readings.append(self._evaluation(nodes, "global", None))
        shared = None
        if section.reference or any(meter.needs_reference for meter in self.meters):
            shared = reference(engine)
        if section.reference and shared is not None:
            readings.append(self._evaluation(nodes, "own", shared))
            if section.global_test:
                readings.append(self._evaluation(nodes[:1], "global", shared))
        readings += [meter.read(nodes, shared) for meter in self.meters]
        if engine.recorder is not None:
            readings.append(engine.recorder.read())
        tickets = [ticket for reading in readings for ticket in reading.tickets]
        engine.collector.add(tickets, self._complete, (row, readings))

    def summary(self) -> Row:
        """Return the summary of the whole run."""
        engine, last, name = self._engine, self.last or {}, self.measures[0].name
        late = [node.best for node in engine.nodes if node.late and node.best is not None]
        summary: Row = {
            "clients": engine.world.clients,
            "method": engine.world.method.name,
            "seed": engine.world.seed,
            "time": engine.now,
            "events": engine.events,
            "steps": engine.steps,
            "parameters": engine.nodes[0].facts.parameters,
            "message_bytes": {str(part): size for part, size in engine.nodes[0].facts.sizes.items()},
            "flops": self.flops,
            "final": last,
            f"best_{name}": self.best and {key: self.best[key] for key in ("time", name, f"{name}_sd")},
            "delayed": {"clients": sum(node.late for node in engine.nodes), **scores.spread(late, "best")},
            "traffic": {name: sum(getattr(node, name) for node in engine.nodes) for name in self._traffic()},
            "failures": {"events": self._failed_events(), "clients": self.failures},
            "meters": {meter.name: meter.summary() for meter in self.meters},
            **({} if engine.exchanges is None else {"exchanges": engine.exchanges.figures()}),
            **written(self.measures),
        }
        return scores.finite(summary)  # type: ignore[no-any-return]

    def _evaluation(self, nodes: list[SimulatedClient], what: str, at: Any) -> Reading:
        job = Evaluate(what == "global", at is not None)
        tickets = [node.proxy.ask(job) if at is None else node.proxy.ask(job, at) for node in nodes]
        prefix = ("global_" if what == "global" else "") if at is None else f"reference_{what}_"

        def finish(found: list[Score]) -> Row:
            by_node = dict(zip(nodes, found, strict=True))
            row = scores.of(found, prefix, self.measures, pool=what == "own")
            if prefix == "":
                row |= self._own(by_node)
            return row

        return Reading(tickets, finish)

    def _own(self, by_node: dict[SimulatedClient, Score]) -> Row:
        """Note each client's best; return the figures of delayed clients, and of each one if asked for."""
        for node, score in by_node.items():
            if score.samples and math.isfinite(score.metric):
                node.best = score.metric if node.best is None else self.measures[0].best((node.best, score.metric))
        row: Row = {}
        if self._engine.recorder is not None:
            self._engine.recorder.scored(by_node)
        late = {node: score for node, score in by_node.items() if node.late}
        if self._engine.join_times:
            best = [node.best for node in self._engine.nodes if node.late and node.best is not None]
            row |= scores.of(list(late.values()), "delayed_", self.measures, pool=True)
            row |= scores.spread(best, "delayed_best")
        if self._section.per_client:
            row["clients"] = {node.name: score.metric for node, score in by_node.items() if score.samples}
        return row

    def _traffic(self) -> tuple[str, ...]:
        return (*TRAFFIC, "reference_bytes") if self._engine.world.method.moves is not None else TRAFFIC

    def _failed_events(self) -> int:
        return sum(client["events"] for client in self.failures.values())

    def _collected(self, facts: list[Outcome], context: tuple[str, float, list[Any]]) -> None:
        [outcome], (name, time, contexts) = facts, context
        self.flops += outcome.flops
        if outcome.failure:
            client = self.failures.setdefault(name, {"events": 0, "why": outcome.failure})
            client["events"] += 1
            client["trains"] = outcome.trains
            if self._engine.recorder is not None:
                self._engine.recorder.failed(time, name, outcome.failure)
        elif outcome.trains:
            self.loss[0] += outcome.loss
            self.loss[1] += 1
        for meter, noted in zip(self._watching, contexts, strict=True):
            meter.collected(outcome, noted)

    def _complete(self, facts: list[Any], context: tuple[Row, list[Reading]]) -> None:
        row, readings = context
        row["train_loss"] = self.loss[0] / self.loss[1] if self.loss[1] else None
        row["flops"] = self.flops
        row["failed_events"] = self._failed_events()
        row["given_up"] = sum(not client["trains"] for client in self.failures.values())
        self.loss = [0.0, 0]
        given = iter(facts)
        for reading in readings:
            figures = reading.finish([next(given) for _ in reading.tickets])
            if twice := row.keys() & figures.keys():
                raise OptionError(f"meters.names: {', '.join(sorted(twice))}: must be a figure of one meter only")
            row |= figures
        row = scores.finite(row)
        self.rows += 1
        self.last = row
        first = self.measures[0]
        reached = row[first.name]
        if reached is not None and (self.best is None or first.better(reached, self.best[first.name])):
            self.best = row
        self.write(row)

    def save(self) -> dict[str, Any]:
        """Return the state that `restore` takes."""
        names = ("flops", "loss", "rows", "last", "best", "failures")
        measured = {} if self.measures[0] == ACCURACY else {"metric": self.measures[0].name}
        state = {name: getattr(self, name) for name in names} | measured
        return state | {"meters": {m.name: m.save() for m in self.meters}}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `save` returned."""
        meters, metric = state.pop("meters"), state.pop("metric", ACCURACY.name)
        for name, value in state.items():
            setattr(self, name, value)
        if metric != self.measures[0].name:  # the task has another one by now: what was best by the old one is not
            self.best = None
            for node in self._engine.nodes:
                node.best = None
        for meter in self.meters:
            meter.restore(meters[meter.name])
