"""Exchanges with an answer on a real network: a peer answers, and moves, beside its training."""

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from pushcen.codec import Payload
from pushcen.errors import OptionError
from pushcen.learning import ExchangeUpdate
from pushcen.protocol import ANSWER, Ask, Envelope, PeerId, answer_to, name_of
from pushcen.runtime.channels import Channels
from pushcen.runtime.durable import DurablePeer
from pushcen.runtime.shared import Refusal, Shared

_PENDING = 32  # messages that may wait for the thread
_ASKED = 1024  # questions whose answers may still come


class Exchanging:
    """One peer's exchanges. Its model moves in a thread of their own, one after the other, whatever trains meanwhile.

    Moves are durable with the next compute event; a crash before that undoes this peer's half of them.
    """

    def __init__(self, me: DurablePeer, channels: Channels, shared: Shared) -> None:
        update = me.learner.update
        if not isinstance(update, ExchangeUpdate):
            raise OptionError(
                f"method.name: the update of a method that asks must be an ExchangeUpdate, not {update!r:.80}"
            )
        update.keep_apart()
        self._me, self._channels, self._update = me, channels, update
        self._log, self._metrics, self._facts = shared.log, shared.metrics, shared.seen.facts
        self._thread = ThreadPoolExecutor(1, "exchanges")
        self._asked: dict[tuple[PeerId, int], None] = {}  # whom, under which number
        self._tasks: set[asyncio.Task[None]] = set()

    def asks(self, envelopes: Iterable[Envelope]) -> None:
        """Note questions that are sent now."""
        for envelope in envelopes:
            self._asked[envelope.receiver, envelope.sequence] = None
            self._metrics.exchanges.labels("asked").inc()
        for oldest in list(self._asked)[:-_ASKED]:
            del self._asked[oldest]

    def check(self, envelope: Envelope) -> None:
        """Refuse an answer to what was not asked, and whatever comes too fast."""
        if envelope.part == ANSWER and (envelope.sender, envelope.sequence) not in self._asked:
            raise Refusal("unasked", f"{envelope.sender} answers {envelope.sequence}, which it was not asked")
        if len(self._tasks) >= _PENDING:
            raise Refusal("busy", f"{_PENDING} exchanges are waiting")

    def received(self, envelope: Envelope, payload: Payload) -> None:
        """Answer a question, or move by an answer, as soon as the thread is free."""
        if envelope.part == ANSWER:
            self._asked.pop((envelope.sender, envelope.sequence), None)
        task = asyncio.get_running_loop().create_task(self._move(envelope, payload))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def close(self) -> None:
        """End the thread. What waits is not done any more."""
        for task in self._tasks:
            task.cancel()
        self._thread.shutdown(cancel_futures=True)

    async def _move(self, envelope: Envelope, payload: Payload) -> None:
        rule, run = self._me.peer.rules.outbox, asyncio.get_running_loop().run_in_executor
        assert isinstance(rule, Ask)
        terms = rule.share_with(name_of(envelope.sender)), rule.momentum
        if envelope.part == ANSWER:
            await run(self._thread, self._update.hear, payload, *terms)
            self._metrics.exchanges.labels("completed").inc()
        else:
            answer = await run(self._thread, self._update.answer, payload, *terms)
            self._metrics.exchanges.labels("answered").inc()
            self._channels.send([answer_to(envelope, answer)])
        self._facts.moved(name_of(envelope.sender), terms[0])

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            self._log.seldom("exchange", "an exchange failed", text=str(error)[:300])
