"""The real network: the Clients of the simulator as processes that know each other only through gRPC.

Here live certificates and signed records, the durable ledger, membership, the wire's messages, and the driver that
lets a Client train, receive and push. Mass, models and methods do not: this package moves what they make. What is
named here is enough to run a peer from Python (examples/peer.py); it is imported when it is asked for.
"""

from typing import TYPE_CHECKING

from pushcen.lazy import lazily

if TYPE_CHECKING:
    from pushcen.runtime.audit import audit_folders
    from pushcen.runtime.kept import weights_of
    from pushcen.runtime.options import RuntimeOptions
    from pushcen.runtime.peer import run_peer
    from pushcen.runtime.security.authority import Authority
    from pushcen.runtime.security.identity import Certified
    from pushcen.runtime.setup import Setup

__all__ = ["Authority", "Certified", "RuntimeOptions", "Setup", "audit_folders", "run_peer", "weights_of"]
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "Authority": "pushcen.runtime.security.authority",
            "Certified": "pushcen.runtime.security.identity",
            "RuntimeOptions": "pushcen.runtime.options",
            "Setup": "pushcen.runtime.setup",
            "audit_folders": "pushcen.runtime.audit",
            "run_peer": "pushcen.runtime.peer",
            "weights_of": "pushcen.runtime.kept",
        },
    )
