"""Initial weights from a file: safetensors, or PyTorch's own format read without running anything in it."""

from collections.abc import Iterator
from pathlib import Path

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from pushcen.errors import LearningError


def load_weights(model: nn.Module, path: str | Path) -> None:
    """Load the weights of a .safetensors, .pth or .pt file into the model; refuse it whole if they do not fit.

    >>> load_weights(nn.Linear(2, 1), "nowhere.pth")
    Traceback (most recent call last):
    pushcen.errors.LearningError: weights = 'nowhere.pth': there is no such file
    """
    path = Path(path)
    if not path.is_file():
        raise LearningError(f"weights = {str(path)!r}: there is no such file")
    try:
        tensors = _read(path)
    except LearningError:
        raise
    except Exception as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise LearningError(f"weights = {str(path)!r}: cannot be read: {reason:.200}") from None
    expected = model.state_dict()
    tensors = {name: expected[name] for name in _counters(model)} | tensors
    wrong = [
        f"{name} is {list(tensors[name].shape)}, not {list(tensor.shape)}" if name in tensors else f"no {name}"
        for name, tensor in expected.items()
        if name not in tensors or tensors[name].shape != tensor.shape
    ]
    wrong += [f"{name} is not in the model" for name in tensors if name not in expected]
    if wrong:
        raise LearningError(f"weights = {str(path)!r}: does not fit the model: {'; '.join(wrong[:3])}")
    model.load_state_dict(tensors)


def _counters(model: nn.Module) -> Iterator[str]:
    """Yield the names of BatchNorm's counters of batches, which older files, torchvision's too, do not have."""
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and module.num_batches_tracked is not None:
            yield f"{name}.num_batches_tracked".removeprefix(".")


def _read(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return load_file(path)
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(isinstance(value, torch.Tensor) for value in tensors.values()):
        raise LearningError(f"weights = {str(path)!r}: must hold a state dict, names with tensors")
    return tensors
