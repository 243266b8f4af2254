"""Encoded images (JPEG, PNG, ...), and folders of them: `class/image`, the same below `train/` and `test/`, or
Tiny-ImageNet's own layout. Each image is measured before it is decoded.
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pushcen.data.arrays import LONGEST_PHOTOGRAPH, Arrays, Samples, check_size
from pushcen.errors import DataError

Named = tuple[str, Path | bytes]  # an encoded image, and what errors call it
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "PPM", "TIFF")  # Pillow's other parsers stay unused
_SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff"}
_TESTS = ("test", "val", "valid", "validation")
Labelled = list[tuple[Path, int]]


def read_folder(folder: Path, size: int | None = None) -> Arrays:
    """Read a folder of images, one folder for each class; classes are numbered in the order of their names.

    With a `size` each is made a square of so many pixels a side.

    >>> import tempfile
    >>> from PIL import Image
    >>> folder = Path(tempfile.mkdtemp())
    >>> for kind in ("dog", "cat"):
    ...     (folder / kind).mkdir()
    ...     Image.new("RGB", (8, 8)).save(folder / kind / "1.png")
    >>> arrays = read_folder(folder)
    >>> arrays.classes, arrays.train.labels.tolist()
    (('cat', 'dog'), [0, 1])
    """
    root = folder / "train" if (folder / "train").is_dir() else folder
    classes = sorted(child.name for child in root.iterdir() if child.is_dir())
    if not classes:
        raise DataError(f"{root}: has no folders; images must be in one folder for each class")
    parts = [_by_class(root, classes)]
    annotations = folder / "val" / "val_annotations.txt"
    if annotations.is_file():
        parts.append(_annotated(annotations, classes))
    elif root != folder and (tests := next((folder / name for name in _TESTS if (folder / name).is_dir()), None)):
        if strange := sorted({child.name for child in tests.iterdir() if child.is_dir()} - set(classes)):
            raise DataError(f"{tests / strange[0]}: a class that {root} has not")
        parts.append(_by_class(tests, classes))
    pixels = decode([[_named(path) for path, _ in part] for part in parts], size)
    labels = [np.array([label for _, label in part], np.int64) for part in parts]
    train, *test = (Samples(x, y) for x, y in zip(pixels, labels, strict=True))
    return Arrays(str(folder), train, test[0] if test else None, _words(folder, classes))


def _named(path: Path) -> Named:
    return str(path), path


def _by_class(root: Path, classes: list[str]) -> Labelled:
    found = []
    for label, name in enumerate(classes):
        images = sorted(path for path in (root / name).rglob("*") if path.suffix.lower() in _SUFFIXES)
        if not images and root.name not in _TESTS:
            raise DataError(f"{root / name}: no images; wanted files that end in {', '.join(sorted(_SUFFIXES))}")
        found += [(path, label) for path in images]
    return found


def _annotated(annotations: Path, classes: list[str]) -> Labelled:
    """Read Tiny-ImageNet's validation set: lines of file name, class and a box, with tabs between."""
    number = {name: label for label, name in enumerate(classes)}
    found = []
    for at, line in enumerate(annotations.read_text(errors="replace").splitlines(), 1):
        name, _, rest = line.partition("\t")
        kind = rest.partition("\t")[0]
        if Path(name).name != name or kind not in number:
            raise DataError(f"{annotations}, line {at}: must be a file's name, a tab and a class of the training set")
        found.append((annotations.parent / "images" / name, number[kind]))
    return found


def _words(folder: Path, classes: list[str]) -> tuple[str, ...]:
    """Return the classes in words, where the folder has them: `n01443537` is `goldfish`."""
    path = folder / "words.txt"
    lines = path.read_text(errors="replace").splitlines() if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name).partition(",")[0] for name in classes)


def decode(parts: Sequence[Sequence[Named]], size: int | None = None) -> list[NDArray[np.uint8]]:
    """Decode the images of each part (training, test) to an array [N, H, W, 3].

    A grey image becomes RGB like the others; where all are grey (MNIST), all keep their one channel. With a `size`
    images are turned upright, as cameras note it, resized (their short side) and cropped (the middle of the long one).

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
    if size is None:
        with _open(*first) as image:
            width, height = image.size
        check_size(width, height, first[0])
    else:
        width, height = size, size
    arrays, all_grey = [], True
    for part in parts:
        pixels = np.empty((len(part), height, width, 3), np.uint8)
        for row, (name, source) in enumerate(part):
            with _open(name, source) as image:
                if size is not None:
                    check_size(image.width, image.height, name, LONGEST_PHOTOGRAPH)
                elif image.size != (width, height):
                    raise DataError(
                        f"{name}: {image.width} x {image.height} pixels, but {first[0]} has {width} x {height}: "
                        "all images of a data set must have one size; size = 64, say, makes them alike"
                    )
                all_grey &= image.mode in ("1", "L")
                pixels[row] = _rgb(image, name, size)
        arrays.append(pixels)
    return [pixels[..., :1] for pixels in arrays] if all_grey else arrays


def fit(image: Any, size: int) -> Any:
    """Return an image of Pillow's as a square: its short side resized, the middle of the long one kept.

    >>> from PIL import Image
    >>> fit(Image.new("RGB", (640, 480)), 64).size
    (64, 64)
    """
    from PIL import Image

    cut = min(image.size)
    left, top = (image.width - cut) // 2, (image.height - cut) // 2
    return image.resize((size, size), Image.Resampling.BILINEAR, (left, top, left + cut, top + cut))


def _open(name: str, source: Path | bytes) -> Any:
    from PIL import Image

    try:
        return Image.open(io.BytesIO(source) if isinstance(source, bytes) else source, formats=_FORMATS)
    except (Image.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{name}: not a readable image: {error}") from None


def _rgb(image: Any, name: str, size: int | None) -> NDArray[np.uint8]:
    from PIL import ImageOps

    try:
        if size is None:
            return np.asarray(image.convert("RGB"))
        image.draft(None, (2 * size, 2 * size))  # a JPEG is decoded no larger than it has to be
        return np.asarray(fit(ImageOps.exif_transpose(image).convert("RGB"), size))
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(f"{name}: the image is damaged: {error}") from None
