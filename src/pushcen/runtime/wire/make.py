"""Make `peer_pb2` anew from `peer.proto`: `python src/pushcen/runtime/wire/make.py`; needs grpcio-tools."""

import sys
from pathlib import Path

SOURCES = Path(__file__).parents[3]


def make(folder: Path = SOURCES) -> None:
    """Write the generated code below `folder`."""
    from grpc_tools import protoc

    outputs = [f"--python_out={folder}", f"--pyi_out={folder}"]
    if protoc.main(["protoc", f"-I{SOURCES}", *outputs, "pushcen/runtime/wire/peer.proto"]) != 0:
        raise SystemExit("protoc failed")


if __name__ == "__main__":
    make(*map(Path, sys.argv[1:2]))
