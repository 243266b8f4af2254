"""What is wrong with a peer, by what it says of itself, with the likely cause and what to do about it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from pushcen.runtime.status import EVERY, NeighbourStatus, Status

SOON = 30
"""Days before its end from which a certificate is said to end soon."""
LEVELS = ("ok", "warning", "critical")
_DAY = 86_400.0
_GONE = "; write off who is gone for good, with `pushcen forget`"
_SHOWN = 3  # neighbours that a sentence names
_LATE = 12 * EVERY  # without a word, after which a peer is not taken for running


class Problem(NamedTuple):
    """Something that is wrong. `kind` is a word that stays the same while it lasts."""

    kind: str
    level: str
    text: str
    hint: str


def problems(status: Status, now: float) -> list[Problem]:
    """List what is wrong, the worst first.

    >>> well = Status(time=100.0, started=1.0, phase="training", received=95.0, held=1.0)
    >>> problems(well, now=101.0)
    []
    >>> [(found.kind, found.level) for found in problems(well, now=400.0)]
    [('running', 'critical')]
    """
    if status.ended == "left":
        return []
    found = [*_running(status, now), *_certificate(status, now)]
    if is_running(status, now):
        found += [*_work(status, status.time), *_company(status, status.time)]  # what it knew when it said so
    return sorted(found, key=lambda one: -LEVELS.index(one.level))


def level_of(found: list[Problem]) -> str:
    """Return how bad it is: ok, warning or critical."""
    return max((one.level for one in found), key=LEVELS.index, default="ok")


def is_running(status: Status, now: float) -> bool:
    """Return whether a peer has said something of late, and not that it ends."""
    return not status.ended and bool(status.time) and now - status.time < _LATE


def span(seconds: float) -> str:
    """Return how long something takes, as people say it.

    >>> span(42), span(600), span(3 * 3600), span(5 * 86400)
    ('42 s', '10 min', '3.0 h', '5.0 days')
    """
    for size, unit, shown in ((_DAY, "days", ".1f"), (3600, "h", ".1f"), (60, "min", ".0f")):
        if seconds >= 2 * size or (size < _DAY and seconds >= size * 1.5):
            return f"{seconds / size:{shown}} {unit}"
    return f"{max(seconds, 0):.0f} s"


def _running(status: Status, now: float) -> Iterator[Problem]:
    again = "start it again: it goes on from its last commit"
    if not status.time:
        yield Problem("running", "warning", "it has never said how it is: not started, or by an earlier version", again)
    elif status.ended == "stopped":
        yield Problem("running", "critical", f"it was stopped {span(now - status.time)} ago", again)
    elif status.ended == "killed":
        yield Problem("running", "critical", f"it was killed; its last word is {span(now - status.time)} old", again)
    elif status.ended:
        yield Problem("running", "critical", f"it ended with an error: {status.ended}", "mend that, and " + again)
    elif not is_running(status, now):
        text = f"it has said nothing for {span(now - status.time)}: it was killed, or hangs, or its disk is full"
        yield Problem("running", "critical", text, again)


def _certificate(status: Status, now: float) -> Iterator[Problem]:
    renew = "`pushcen certs request` here, `pushcen certs sign` at the authority; it is taken over without a restart"
    days = math.floor((status.certificate_end - now) / _DAY)
    if status.revoked:
        text = "its certificate was revoked: nobody lets it in"
        yield Problem("certificate", "critical", text, "ask who keeps the authority; with a new key, " + renew)
    elif status.certificate_end and days < 0:
        text = f"its certificate ended {span(now - status.certificate_end)} ago: nobody lets it in"
        yield Problem("certificate", "critical", text, renew)
    elif status.certificate_end and days < SOON:
        yield Problem("certificate", "warning", f"its certificate ends in {days} days", renew)
    if status.certificate_wrong:
        text = f"the certificate in its folder is not taken over: {status.certificate_wrong}"
        yield Problem(
            "new certificate", "warning", text, "it goes on with the one that it has; put the right one there"
        )


def _work(status: Status, now: float) -> Iterator[Problem]:
    if status.waits_for:
        yield Problem("disk", "critical", f"it waits for its disk: {status.waits_for}", "make room; then it goes on")
    if status.failed > status.trained:
        text = f"its last compute event failed, {span(now - status.failed)} ago: {status.failure}"
        yield Problem(
            "event", "warning", text, "it tries again from its last commit; look at its data and learning rate"
        )
    since = now - max(status.trained, status.started)
    if status.phase == "training" and since > max(status.quiet_after, 10 * status.seconds):
        text = f"no compute event was finished for {span(since)}"
        yield Problem("event", "warning", text, "its training may hang, or be far slower than before")


def _company(status: Status, now: float) -> Iterator[Problem]:
    """Yield what is wrong between it and the others, with the likely cause."""
    for one in status.neighbours:
        if one.state == "refuses":
            text = f"{one.name} refuses it: {one.why}"
            yield Problem(f"refused by {one.name}", "warning", text, "give both the same settings, and start again")
    quiet = max(status.quiet_after, 4 * status.seconds)
    if status.phase == "leaving" and status.leaving and now - status.leaving > quiet:
        yield _stays(status, now - status.leaving)
    if status.phase not in ("starting", "training") or not status.exchanges:
        return
    alone = now - max(status.received, status.started)
    if alone <= quiet:
        return
    cause, hint = _cause(status)
    if status.phase == "starting":
        yield Problem("alone", "critical", f"it waits to begin, for {span(alone)}: {cause}", hint)
    else:
        yield Problem("alone", "critical", f"nothing came from others for {span(alone)}: {cause}", hint)
        if status.moves_mass and not status.held + status.waiting:
            text = "it holds no mass: what it learns counts for nobody until somebody pushes to it"
            yield Problem("mass", "critical", text, "it gets mass with the first push that reaches it")


def _stays(status: Status, seconds: float) -> Problem:
    """Say why a peer that leaves is still here."""
    awaited = [f"{one.name} ({one.why or one.state})" for one in status.neighbours if one.awaited]
    why = "nobody takes the mass that it holds" if status.held else f"not confirmed by {_some(awaited) or 'anybody'}"
    hint = "others confirm with their next compute event: it needs some that answer and still train"
    return Problem("leaving", "warning", f"it has been leaving for {span(seconds)}: {why}", hint + _GONE)


def _cause(status: Status) -> tuple[str, str]:
    """Return why, most likely, nothing comes from others; and what to do."""
    certificate = [*_certificate(status, status.time)]
    if certificate and certificate[0].level == "critical":
        return certificate[0].text, certificate[0].hint
    answer = [one for one in status.neighbours if one.state == "answers"]
    refuse = [one for one in status.neighbours if one.state == "refuses"]
    tried = [f"{one.name} at {one.address}: {one.why}" for one in status.neighbours if one.state == "silent"]
    tried += [f"{address}: {why}" for address, why in status.silent.items()]
    if refuse and not answer:
        return f"refused by {_names(refuse)}: {refuse[0].why}", "give all the same settings, and start again"
    if any("UNAUTHENTICATED" in one for one in tried) and not answer:
        return (
            f"others refuse its certificate: {_some(tried)}",
            "`pushcen certs show`; is it revoked, or another network's?",
        )
    if tried and not answer:
        return f"nobody answers: {_some(tried)}", "are they running, and does a firewall let it call them?"
    if not answer:
        return "it knows nobody", "say --join HOST:PORT, or let others join it"
    if not any(one.called > status.started for one in answer):
        if not status.address:
            return (
                f"it only dials out, and none of {_names(answer)} hosts it",
                "are they of a version that can, with room?",
            )
        text = f"others answer ({_names(answer)}), but nobody has ever called it"
        if status.address.startswith("@"):
            return text, f"it is reached through {status.address[1:]}: can others reach these?"
        return text, f"can others reach {status.address}? That is what --advertise says; a firewall may be in between"
    refused = {why: count for why, count in status.refusals.items() if why in ("payload", "mass", "malformed", "rate")}
    if refused:
        said = ", ".join(f"{why} ({count})" for why, count in refused.items())
        return (
            f"others answer ({_names(answer)}), and what came was refused: {said}",
            "docs/runtime.md says what is refused, and why",
        )
    return (
        f"others answer ({_names(answer)}), and push nothing here",
        "they may be done with training, or hold no mass themselves",
    )


def _names(neighbours: list[NeighbourStatus]) -> str:
    names = [one.name for one in neighbours]
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")


def _some(texts: list[str]) -> str:
    return "; ".join(texts[:_SHOWN]) + (f"; and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")
