"""The lock of a state folder, which the process that runs its peer holds, and which ends with that process."""

import fcntl
import os
import time
from pathlib import Path

_TRIES, _PAUSE = 10, 0.02


def take(lock: int) -> bool:
    """Take a lock, by the descriptor of its file; return whether nobody else has it.

    Whoever looks has it for a moment, so it is tried again.
    """
    for _ in range(_TRIES):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            time.sleep(_PAUSE)
    return False


def is_run(folder: Path) -> bool:
    """Return whether a process runs a peer on a state folder; True if that cannot be seen."""
    try:
        lock = os.open(folder / "lock", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return True
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(lock)
