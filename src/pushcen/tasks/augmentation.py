"""Images changed at random while a model trains, from the client's own stream: flipped, or cropped after padding."""

from typing import Any

import torch
from torch import nn

from pushcen.errors import OptionError

_WAYS = ("flip", "crop")
_PADDING = 4  # pixels on each side


def check_augment(ways: str) -> tuple[str, ...]:
    """Return the ways to change images, or refuse one that there is not.

    >>> check_augment("flip,crop")
    ('flip', 'crop')
    >>> check_augment("turn")
    Traceback (most recent call last):
    pushcen.errors.OptionError: augment = 'turn': must be flip, crop or flip,crop
    """
    chosen = tuple(way.strip() for way in ways.split(","))
    if not set(chosen) <= set(_WAYS) or len(set(chosen)) != len(chosen):
        raise OptionError(f"augment = {ways!r}: must be flip, crop or flip,crop")
    return chosen


def augment(model: nn.Module, ways: str) -> nn.Module:
    """Make a model change the images of each batch that it trains on; in evaluation it takes them as they are.

    What is drawn is drawn on the CPU, by functions of PyTorch that a learner has draw from its client's stream.

    >>> model = augment(nn.Flatten(), "flip")
    >>> images = torch.arange(4.0).reshape(1, 1, 2, 2).expand(99, 1, 2, 2)
    >>> sorted(set(map(tuple, model(images).tolist())))
    [(0.0, 1.0, 2.0, 3.0), (1.0, 0.0, 3.0, 2.0)]
    >>> set(map(tuple, model.eval()(images).tolist()))
    {(0.0, 1.0, 2.0, 3.0)}
    """
    chosen = check_augment(ways)

    def change(module: nn.Module, inputs: tuple[Any, ...]) -> Any:
        if not module.training:
            return None
        images = inputs[0]
        if "flip" in chosen:
            images = flip(images)
        return (crop(images) if "crop" in chosen else images, *inputs[1:])

    model.register_forward_pre_hook(change)
    return model


def flip(images: torch.Tensor) -> torch.Tensor:
    """Return images [N, C, H, W], each with an even chance mirrored, left for right."""
    mirrored = (torch.rand(len(images)) < 0.5).to(images.device)
    return torch.where(mirrored[:, None, None, None], images.flip(-1), images)


def crop(images: torch.Tensor) -> torch.Tensor:
    """Return images [N, C, H, W], each moved by up to four pixels each way; zeros, the mean colour, move in.

    >>> crop(torch.ones(2, 1, 8, 8)).shape
    torch.Size([2, 1, 8, 8])
    """
    count, _, height, width = images.shape
    padded = nn.functional.pad(images, (_PADDING,) * 4)
    down, right = torch.randint(2 * _PADDING + 1, (2, count)).to(images.device)
    rows = down[:, None] + torch.arange(height, device=images.device)
    columns = right[:, None] + torch.arange(width, device=images.device)
    at = torch.arange(count, device=images.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[at, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)
