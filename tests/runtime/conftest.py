"""gRPC's own lines on every failed handshake are off, as `pushcen peer` has them."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")
