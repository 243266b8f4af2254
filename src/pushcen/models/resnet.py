"""ResNet-18 in torchvision's layout, with its names, so that its weight files load."""

import torch
from torch import nn


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
