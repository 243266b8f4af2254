"""Timing side by side, in alternation: machines are shared and noisy, and slow down for seconds at a time."""

import statistics
import time
from collections.abc import Callable


def best_seconds(*functions: Callable[[], object], turns: int) -> list[float]:
    """Run the functions in turn, `turns` times after one for warming up; return the best time of each.

    >>> quick, slow = best_seconds(lambda: None, lambda: sum(range(10_000)), turns=3)
    >>> quick < slow
    True
    """
    best = [float("inf")] * len(functions)
    for turn in range(turns + 1):
        for i, function in enumerate(functions):
            begin = time.perf_counter()
            function()
            if turn:
                best[i] = min(best[i], time.perf_counter() - begin)
    return best


def time_ratio(one: Callable[[], object], other: Callable[[], object], turns: int) -> float:
    """Return how much longer `one` takes than `other`: the median over pairs, each timed back to back.

    What slows the machine down slows both of a pair; the best of each could be from different times.

    >>> time_ratio(lambda: sum(range(100_000)), lambda: sum(range(10_000)), turns=5) > 2
    True
    """
    seconds: dict[Callable[[], object], float] = {}
    ratios = []
    for turn in range(turns + 1):
        for function in (one, other) if turn % 2 else (other, one):
            begin = time.perf_counter()
            function()
            seconds[function] = time.perf_counter() - begin
        if turn:
            ratios.append(seconds[one] / seconds[other])
    return statistics.median(ratios)
