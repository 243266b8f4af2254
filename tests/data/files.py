"""Small data sets in every format that is read, made from one array."""

import gzip
import io

import numpy as np
from PIL import Image


def images(count=12, size=8, channels=3, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, size, size, channels), np.uint8)


def labels(count=12, classes=3):
    return np.arange(count) % classes


def npz(path, **arrays):
    np.savez(path, **({"x_train": images(), "y_train": labels()} | arrays))
    return path


def idx_bytes(array):
    array = np.ascontiguousarray(array, np.uint8)
    return bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes() + array.tobytes()


def idx(folder, *, zipped=False, test=True):
    folder.mkdir(exist_ok=True)
    for prefix, count in (("train", 12), ("t10k", 4)) if test else (("train", 12),):
        for name, array in (
            (f"{prefix}-images-idx3-ubyte", images(count, channels=1)[..., 0]),
            (f"{prefix}-labels-idx1-ubyte", labels(count)),
        ):
            data = idx_bytes(array)
            (folder / (name + ".gz" * zipped)).write_bytes(gzip.compress(data) if zipped else data)
    return folder


def png(pixels):
    """An RGB array [H, W, 3] or a grey one [H, W, 1], as PNG bytes."""
    file = io.BytesIO()
    Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[..., 0]).save(file, "PNG")
    return file.getvalue()


def folder(root, classes=("ant", "bee", "cat")):
    """`class/image`, four images each."""
    for at, (pixels, label) in enumerate(zip(images(), labels(), strict=True)):
        place = root / classes[label]
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{at:02}.png").write_bytes(png(pixels))
    return root


def tiny_imagenet(root):
    """The layout of Tiny-ImageNet, with one grey image, and a test folder without labels as the original has it."""
    for at, (pixels, label) in enumerate(zip(images(), labels(), strict=True)):
        place = root / "train" / f"n{label}" / "images"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"n{label}_{at:02}.JPEG").write_bytes(png(pixels if at else pixels[..., :1]))
    for name in ("val", "test"):
        (root / name / "images").mkdir(parents=True)
        for at, pixels in enumerate(images(3, seed=1)):
            (root / name / "images" / f"{name}_{at}.JPEG").write_bytes(png(pixels))
    lines = [f"val_{at}.JPEG\tn{2 - at}\t0\t0\t7\t7\n" for at in range(3)]
    (root / "val" / "val_annotations.txt").write_text("".join(lines))
    (root / "words.txt").write_text("n0\tgoldfish, Carassius auratus\nn2\tbullfrog\nn9\tno class of ours\n")
    return root
