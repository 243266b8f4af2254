"""Timing side by side: machines are shared and noisy, so the best of several turns counts, taken in alternation."""

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
