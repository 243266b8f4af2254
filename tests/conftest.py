"""Settings for all tests: one torch thread, and hypothesis without deadlines, since the machine is shared."""

import logging
import os
import signal

import hypothesis
import pytest
import torch

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # as `pushcen peer` has it, before anything imports gRPC
torch.set_num_threads(1)
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a shell's background; what tests start would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
hypothesis.settings.register_profile("pushcen", deadline=None, print_blob=True)
hypothesis.settings.load_profile("pushcen")


@pytest.fixture(autouse=True)
def _the_same_logs_for_every_test():
    """Take away the handlers that a command under test has set up for its process."""
    before, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = before
    logging.root.setLevel(level)
