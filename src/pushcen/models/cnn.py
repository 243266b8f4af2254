"""A small network for small images: the default, which trains in milliseconds."""

import torch
from torch import nn


class SmallCNN(nn.Module):
    """Two 3 x 3 convolutions (16 and 32 channels) and two linear layers, for images of 8 x 8 or another `size`.

    >>> sum(p.numel() for p in SmallCNN(classes=10).parameters())
    38282
    >>> SmallCNN(classes=7, channels=3, size=(28, 30))(torch.zeros(2, 3, 28, 30)).shape
    torch.Size([2, 7])
    """

    def __init__(self, classes: int = 10, channels: int = 1, size: tuple[int, int] = (8, 8)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * (size[0] // 2) * (size[1] // 2), 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        x = self.conv1(images).relu()
        x = nn.functional.max_pool2d(self.conv2(x), 2).relu()
        scores: torch.Tensor = self.fc2(self.fc1(x.flatten(1)).relu())
        return scores
