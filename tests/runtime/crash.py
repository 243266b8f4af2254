"""`python -m tests.runtime.crash peer ...`: pushcen that kills itself, as kill -9 does, at moments of a test's choice.

`CRASH` has a probability for each of them: `train=0.1,commit=0.1`.
"""

import os
import random
import signal
from pathlib import Path

from pushcen.cli import app

MOMENTS = ("train", "write", "commit", "send", "receive")


def maybe(moment):
    chances = dict(pair.split("=") for pair in os.environ.get("CRASH", "").split(",") if pair)
    if random.random() < float(chances.get(moment, 0)):
        with Path(os.environ["CRASH_LOG"]).open("a") as file:
            file.write(moment + "\n")
        os.kill(os.getpid(), signal.SIGKILL)


def install():
    from pushcen.learning import Learner
    from pushcen.runtime.channels import Channels
    from pushcen.runtime.node import PeerNode
    from pushcen.runtime.state_folder import StateFolder

    def before(kind, name, moment):
        original = getattr(kind, name)

        def wrapped(self, *arguments, **options):
            maybe(moment)
            return original(self, *arguments, **options)

        setattr(kind, name, wrapped)

    before(Learner, "encode", "train")  # trained, nothing written
    before(StateFolder, "commit", "write")  # weights on disk, no commit
    before(Channels, "send", "commit")  # committed, nothing sent
    before(Channels, "_is_there", "send")  # some are sent, others are not
    before(PeerNode, "check_mass", "receive")  # in the middle of an envelope, or with it read and not taken in


if __name__ == "__main__":
    install()
    app()
