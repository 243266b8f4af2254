"""The models of the experiments, in plain PyTorch. Nothing here knows how they are trained or sent."""

from pushcen.models.cnn import SmallCNN
from pushcen.models.lenet import LeNet
from pushcen.models.resnet import resnet18

__all__ = ["LeNet", "SmallCNN", "resnet18"]
