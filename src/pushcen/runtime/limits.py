"""What callers may ask of a peer: so many calls a second each, so many bytes and connections together."""

import resource
from collections import OrderedDict

_MOST = 4096  # callers that are remembered
_DESCRIPTORS = 65_536  # that a process asks for


def raise_descriptors() -> int:
    """Let this process open as many files and connections as the system lets it; return how many.

    >>> raise_descriptors() == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    True
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections(known: int) -> int:
    """Say how many connections a peer takes in that knows so many others: at most half of its descriptors, so that the
    state and its own calls keep the rest.

    >>> connections(known=64)
    320
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * known + 64
    return wanted if soft == resource.RLIM_INFINITY else min(wanted, soft // 2)


class Rate:
    """A bucket of tokens for each caller, filled at a rate, holding three seconds' worth.

    >>> rate = Rate(2.0)
    >>> [rate.allows("ann", now=0.0) for _ in range(7)]
    [True, True, True, True, True, True, False]
    >>> rate.allows("ann", now=1.0), rate.allows("bob", now=1.0)
    (True, True)
    """

    def __init__(self, per_second: float) -> None:
        self._rate = per_second
        self._most = max(1.0, 3 * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, caller: str, now: float) -> bool:
        """Say whether a caller may do one thing more, and count it."""
        tokens, then = self._buckets.pop(caller, (self._most, now))
        tokens = min(self._most, tokens + (now - then) * self._rate)
        allowed = tokens >= 1
        self._buckets[caller] = (tokens - allowed, now)
        if len(self._buckets) > _MOST:
            self._buckets.popitem(last=False)
        return allowed


class Budget:
    """Bytes that may be under way at a time. One message always may, however large.

    >>> budget = Budget(100)
    >>> budget.take(70), budget.take(70), budget.used
    (True, False, 70)
    >>> budget.give(70)
    >>> budget.take(1000)
    True
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0

    def take(self, size: int) -> bool:
        """Take so many bytes, if they are there."""
        if self.used and self.used + size > self._most:
            return False
        self.used += size
        return True

    def give(self, size: int) -> None:
        """Give them back."""
        self.used -= size
