"""Encoded images (JPEG, PNG, ...) become uint8 arrays; each is measured before it is decoded."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import check_size
from pushcen.errors import DataError

Named = tuple[str, Path | bytes]  # an encoded image, and what errors call it
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "PPM", "TIFF")  # Pillow's other parsers stay unused


def decode(parts: Sequence[Sequence[Named]]) -> list[NDArray[np.uint8]]:
    """Decode the images of each part (training, test) to an array [N, H, W, 3].

    A grey image becomes RGB like the others; where all are grey (MNIST), all keep their one channel.

    >>> from PIL import Image
    >>> def png(mode, colour):
    ...     Image.new(mode, (4, 2), colour).save(file := io.BytesIO(), "PNG")
    ...     return file.getvalue()
    >>> (pixels,) = decode([[("a.png", png("RGB", (1, 2, 3))), ("b.png", png("L", 9))]])
    >>> pixels.shape, pixels[:, 0, 0].tolist()
    ((2, 2, 4, 3), [[1, 2, 3], [9, 9, 9]])
    """
    first = next((image for part in parts for image in part), None)
    if first is None:
        raise DataError("no images to decode")
    with _open(*first) as image:
        width, height = image.size
    check_size(width, height, first[0])
    arrays, all_grey = [], True
    for part in parts:
        pixels = np.empty((len(part), height, width, 3), np.uint8)
        for row, (name, source) in enumerate(part):
            with _open(name, source) as image:
                if image.size != (width, height):
                    raise DataError(
                        f"{name}: {image.width} x {image.height} pixels, but {first[0]} has {width} x {height}: "
                        "all images of a data set must have one size"
                    )
                all_grey &= image.mode in ("1", "L")
                pixels[row] = _rgb(image, name)
        arrays.append(pixels)
    return [pixels[..., :1] for pixels in arrays] if all_grey else arrays


def _open(name: str, source: Path | bytes) -> Any:
    from PIL import Image

    try:
        return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS)
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{name}: not a readable image: {error}") from None


def _rgb(image: Any, name: str) -> NDArray[np.uint8]:
    try:
        return np.asarray(image.convert("RGB"))
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{name}: the image is damaged: {error}") from None
