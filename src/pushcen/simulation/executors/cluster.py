"""Tasks in the actors of a Ray cluster: learners live in actors, payloads are references to objects.

Each actor hosts some of the clients and does their tasks in the order in which they were asked for, so a client's chain
is kept. What a task needs of others is passed as references, which Ray fetches from wherever they are.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch

from pushcen.codec import Payload, Reference, read_reference
from pushcen.codec.wire import HEADER
from pushcen.errors import OptionError
from pushcen.learning import OFFER, Outcome, Samples
from pushcen.references import ReferenceName
from pushcen.simulation.executors.executor import Ticket
from pushcen.simulation.executors.host import Host, Make
from pushcen.simulation.jobs import Job

try:
    import ray
except ImportError as error:
    raise OptionError("executor.kind = 'ray': Ray is not installed; pip install 'pushcen[ray]'") from error

REFERENCES = 16
"""How many references an actor keeps decoded, unless a task needs more."""


class Promise(Ticket):
    """A ticket whose facts and product are objects in the cluster."""

    __slots__ = ("product",)

    def __init__(self, client: int, key: int, facts: Any, product: Any) -> None:
        super().__init__(client, key)
        self.facts = facts
        self.product = product


class Worker:
    """An actor's inside: a host, and payloads turned to bytes and back."""

    def __init__(self, folders: list[str], packed: bytes, strict: bool) -> None:
        """Unpack how learners are made and the global test, once the user's modules are found as they were there."""
        torch.set_num_threads(1)
        sys.path.extend(folder for folder in folders if folder not in sys.path)
        made: tuple[Make, Callable[[], Samples] | None] = ray.cloudpickle.loads(packed)
        self._host = Host(*made, strict)
        self._references: dict[bytes, Reference] = {}  # by fingerprint
        self._fingerprints: dict[bytes, bytes] = {}  # by the header of the message that the reference came in

    def run(self, client: int, jobs: Sequence[Job], count: int, *things: Any) -> tuple[Any, Any]:
        """Run a task with `count` inputs, which may be differences to the references behind them; return its facts and
        its product.
        """
        self._hold([base[OFFER] for base in things[count:]], client)
        facts, product = self._host.run(client, jobs, [self._open(thing, client) for thing in things[:count]])
        if isinstance(facts, Outcome):
            facts = replace(facts, payloads={})  # they travel as the product
        return facts, _packed(product)

    def _open(self, thing: Any, client: int) -> Any:
        if not isinstance(thing, dict):
            return thing
        schema = self._host.learners[client].schema
        return {part: Payload.parse(data, schema, self._references) for part, data in thing.items()}

    def _hold(self, bases: Sequence[bytes], client: int) -> None:
        """Read the references that a task needs, unless they are here; drop those that were needed longest ago."""
        for data in bases:
            fingerprint = self._fingerprints.pop(data[:HEADER], None)
            if fingerprint is None:
                reference = read_reference(Payload.parse(data, self._host.learners[client].schema))
                fingerprint = reference.fingerprint
                self._references[fingerprint] = reference
            self._fingerprints[data[:HEADER]] = fingerprint
        for oldest in list(self._fingerprints)[: -max(REFERENCES, len(bases))]:
            self._references.pop(self._fingerprints.pop(oldest), None)


class Cluster:
    """Spreads clients over actors; starts Ray if nobody has, and then ends it too."""

    def __init__(self, host: Host, workers: int, address: str) -> None:
        self._starts = not ray.is_initialized()
        if self._starts:
            ray.init(address=address or None, include_dashboard=False, log_to_driver=False, configure_logging=False)
        actor: Any = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(Worker)
        packed = ray.cloudpickle.dumps((host.make, host.global_test))  # type: ignore[no-untyped-call]
        self._actors: list[Any] = [actor.remote(sys.path, packed, host.strict) for _ in range(workers)]
        self._keys = 0

    def submit(self, client: int, jobs: Sequence[Job], inputs: Sequence[Promise] = ()) -> Promise:
        """Append a task to a client's chain."""
        actor = self._actors[client % len(self._actors)]
        bases: dict[ReferenceName, Any] = {name: base for needed in inputs for name, base in needed.bases}
        products = [needed.product for needed in (*inputs, *bases.values())]
        facts, product = actor.run.options(num_returns=2).remote(client, jobs, len(inputs), *products)
        self._keys += 1
        return Promise(client, self._keys, facts, product)

    def wait(self, ticket: Promise) -> Any:
        """Wait for a task, and return its facts; raise what it raised."""
        try:
            return ray.get(ticket.facts)
        except ray.exceptions.RayTaskError as error:
            raise _cause(error) from None

    def is_done(self, ticket: Promise) -> bool:
        """Return whether `wait` would return at once."""
        return bool(ray.wait([ticket.facts], timeout=0)[0])

    def product(self, ticket: Promise) -> Any:
        """Wait for a task, and return its product."""
        return ray.get(ticket.product)

    def messages(self, ticket: Promise) -> dict[int, bytes]:
        """Wait for a task whose product is payloads; return their bytes, by part."""
        return dict(self.product(ticket))

    def given(self, client: int, product: Any) -> Promise:
        """Return a ticket for what is there already."""
        self._keys += 1
        return Promise(client, self._keys, ray.put(None), ray.put(_packed(product)))

    def close(self) -> None:
        """End the actors, and Ray if it was started here."""
        for actor in self._actors:
            ray.kill(actor)
        if self._starts:
            ray.shutdown()


def _packed(product: Any) -> Any:
    """Turn payloads into bytes, which are checked again where they arrive."""
    return {part: payload.data for part, payload in product.items()} if isinstance(product, dict) else product


def _cause(error: BaseException) -> BaseException:
    """Find what was raised in the first place, through tasks that failed because others had."""
    while (cause := getattr(error, "cause", None)) is not None:
        error = cause
    return error
