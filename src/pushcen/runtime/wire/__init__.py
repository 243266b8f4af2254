"""The messages of the wire: `peer.proto`, and what `make.py` generates from it. No behaviour."""

from pushcen.runtime.wire.peer_pb2 import Hello, Holding, Link, Look, News, Piece, Signed, View

MAJOR, MINOR = 1, 5
"""The version of these messages; peers of another major version are refused."""
SERVICE = "pushcen.v1.Peer"
"""The name of the gRPC service."""

__all__ = ["MAJOR", "MINOR", "SERVICE", "Hello", "Holding", "Link", "Look", "News", "Piece", "Signed", "View"]
