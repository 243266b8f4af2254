"""A small network for small images, such as scikit-learn's digits."""

import torch
from torch import nn


class Cnn(nn.Module):
    """Two 3 x 3 convolutions (16 and 32 channels) and two linear layers, for images of any size from 4 x 4.

    >>> sum(p.numel() for p in Cnn(classes=10).parameters())
    13706
    >>> Cnn(classes=7, channels=3, size=(28, 30))(torch.zeros(2, 3, 28, 30)).shape
    torch.Size([2, 7])
    """

    def __init__(self, classes: int = 10, channels: int = 1, size: tuple[int, int] = (8, 8)) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.fc1 = nn.Linear(32 * (size[0] // 4) * (size[1] // 4), 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        x = nn.functional.max_pool2d(self.conv1(images).relu(), 2)
        x = nn.functional.max_pool2d(self.conv2(x).relu(), 2)
        scores: torch.Tensor = self.fc2(self.fc1(x.flatten(1)).relu())
        return scores
