"""The models of the experiments, in plain PyTorch. Nothing here knows how they are trained or sent."""

from collections.abc import Sequence

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


class LeNet(nn.Module):
    """Two 5 x 5 convolutions (32 and 64 channels) and three linear layers, for 32 x 32 images.

    >>> sum(p.numel() for p in LeNet(classes=10).parameters())
    256830
    """

    def __init__(self, classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 5)
        self.conv2 = nn.Conv2d(32, 64, 5)
        self.fc1 = nn.Linear(1600, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return a score for each class."""
        x = images.contiguous(memory_format=torch.channels_last)  # a quarter faster on a CPU, the same numbers
        x = nn.functional.max_pool2d(self.conv1(x), 2).relu()
        x = nn.functional.max_pool2d(self.conv2(x), 2).relu()
        x = self.fc1(x.flatten(1)).relu()
        x = self.fc2(x).relu()
        scores: torch.Tensor = self.fc3(x)
        return scores


class MLP(nn.Module):
    """Two layers of 64 units for the rows of a table: so many numbers, and after them indices of categories.

    `embedded` has the number of categories and the length of the vector for each of these; index 0, a category that is
    not known, is a vector of zeros. With no `classes` the output is one number, in the unit of which `mean` and
    `deviation` are.

    >>> MLP(numbers=3, embedded=[(40, 7)], classes=2)(torch.zeros(5, 4)).shape
    torch.Size([5, 2])
    >>> MLP(numbers=3, classes=0, mean=170.0, deviation=10.0)(torch.zeros(5, 3)).shape
    torch.Size([5])
    """

    def __init__(
        self,
        numbers: int,
        embedded: Sequence[tuple[int, int]] = (),
        classes: int = 2,
        *,
        mean: float = 0.0,
        deviation: float = 1.0,
    ) -> None:
        super().__init__()
        self._numbers, self._classes, self._mean, self._deviation = numbers, classes, mean, deviation
        self.embeddings = nn.ModuleList(nn.Embedding(count, length) for count, length in embedded)
        self.fc1 = nn.Linear(numbers + sum(length for _, length in embedded), 64)
        self.fc2 = nn.Linear(64, 64)
        self.fc3 = nn.Linear(64, classes or 1)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a score for each class, or a number."""
        parts = [rows[:, : self._numbers]]
        for at, table in enumerate(self.embeddings, self._numbers):
            index = rows[:, at].long()
            parts.append(table((index - 1).clamp(min=0)) * (index > 0).unsqueeze(1))
        x = self.fc2(self.fc1(torch.cat(parts, 1)).relu()).relu()
        scores: torch.Tensor = self.fc3(x)
        return scores if self._classes else scores.squeeze(1) * self._deviation + self._mean

    def call(self) -> str:
        """Return the call that makes such a model.

        >>> MLP(3, [(40, 7)]).call()
        'MLP(3, [(40, 7)], 2)'
        """
        embedded = [(table.num_embeddings, table.embedding_dim) for table in self.embeddings]
        unit = "" if self._classes else f", mean={self._mean!r}, deviation={self._deviation!r}"
        return f"MLP({self._numbers}, {embedded}, {self._classes}{unit})"


class _Block(nn.Module):
    """Two 3 x 3 convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride > 1 or inputs != outputs
            else None
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        around = x if self.downsample is None else self.downsample(x)
        x = self.bn1(self.conv1(x)).relu()
        return torch.relu(self.bn2(self.conv2(x)) + around)


class _ResNet18(nn.Module):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = nn.Sequential(_Block(64, 64, 1), _Block(64, 64, 1))
        self.layer2 = nn.Sequential(_Block(64, 128, 2), _Block(128, 128, 1))
        self.layer3 = nn.Sequential(_Block(128, 256, 2), _Block(256, 256, 1))
        self.layer4 = nn.Sequential(_Block(256, 512, 2), _Block(512, 512, 1))
        self.fc = nn.Linear(512, classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(self.bn1(self.conv1(images)).relu(), 3, 2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        scores: torch.Tensor = self.fc(x.mean(dim=(2, 3)))
        return scores


def resnet18(classes: int = 100) -> nn.Module:
    """Return a ResNet-18 with torchvision's stem (7 x 7, stride 2) and names.

    >>> sum(p.numel() for p in resnet18(classes=1000).parameters())
    11689512
    """
    return _ResNet18(classes)
