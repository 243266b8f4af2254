"""Single arrays of NumPy's npz files, whoever wrote them: held against the bytes that are there; never a pickle."""

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.errors import DataError

UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, OSError, RuntimeError)
"""What reading a file that is no npz may raise."""
_DEFLATE = 1032  # no stream inflates to more than this many times its size


def read_array(archive: zipfile.ZipFile, name: str, path: Path, *dimensions: int) -> NDArray[Any]:
    """Read one array after its header has been held against the bytes that are really there."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as member:
        version = np.lib.format.read_magic(member)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(member)
        if dtype.kind not in "biufU":
            raise DataError(f"{path}: {name} has type {dtype}: only plain numbers and strings are read")
        if len(shape) not in dimensions:
            wanted = " or ".join(map(str, dimensions))
            raise DataError(f"{path}: {name} has shape {shape}: must have {wanted} dimensions")
        size = math.prod(shape) * dtype.itemsize
        if size != info.file_size - member.tell() or info.file_size > _DEFLATE * info.compress_size:
            raise DataError(f"{path}: {name} says {shape} {dtype}, {size} bytes, which its file does not hold")
    with archive.open(info) as member:
        return np.asarray(np.lib.format.read_array(member, allow_pickle=False))
