"""Rules that several tests use, as the methods without mass have them."""

from pushcen.protocol import Buffer, Equal, Fragments, KeepLatest, Nobody, NoInbox, Rules

EQUAL = Rules(weights=Equal())  # Async-DFedAvg
LATEST = Rules(KeepLatest(limit=128), Equal())  # SWIFT with random receivers
PARTS = Rules(Buffer(limit=0), Equal(), Fragments())  # DivShare
ALONE = Rules(NoInbox(), Equal(), Nobody())  # Independent
