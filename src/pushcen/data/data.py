"""A data set as training uses it: normalised tensors, held once in memory however many clients look at them."""

from dataclasses import dataclass

import torch

from pushcen.errors import DataError


@dataclass(frozen=True, eq=False)
class Data:
    """Inputs with their labels, a global test set if there is one, and who owns which sample if that is known.

    Any tensors will do, not only images and not only what `load` returns:

    >>> flowers = Data("flowers", torch.rand(150, 4), torch.arange(150) % 3, classes=("setosa", "virginica", "other"))
    >>> len(flowers), len(flowers.classes)
    (150, 3)
    """

    name: str
    inputs: torch.Tensor  # float32; images are [N, C, H, W]
    labels: torch.Tensor  # int64 [N]
    classes: tuple[str, ...]
    test_inputs: torch.Tensor | None = None
    test_labels: torch.Tensor | None = None
    owners: torch.Tensor | None = None  # int64 [N], from zero

    def __post_init__(self) -> None:
        if (self.test_inputs is None) != (self.test_labels is None):
            raise DataError(f"{self.name}: test inputs and test labels come together or not at all")
        for inputs, labels in ((self.inputs, self.labels), (self.test_inputs, self.test_labels)):
            if inputs is None or labels is None:
                continue
            if labels.shape != (len(inputs),) or not len(inputs):
                raise DataError(f"{self.name}: {len(inputs)} samples have labels of shape {tuple(labels.shape)}")
            if not 0 <= int(labels.min()) <= int(labels.max()) < len(self.classes):
                raise DataError(
                    f"{self.name}: has labels from {int(labels.min())} to {int(labels.max())} and "
                    f"{len(self.classes)} classes: must be from 0 to {len(self.classes) - 1}"
                )
        if self.owners is not None and self.owners.shape != self.labels.shape:
            raise DataError(f"{self.name}: {len(self)} samples have {len(self.owners)} owners")

    def __len__(self) -> int:
        return len(self.labels)


def check_labels(data: Data, outputs: int) -> None:
    """Refuse data with labels that a model with so many outputs cannot give.

    >>> check_labels(Data("halves", torch.rand(4, 2), torch.tensor([0, 1, 1, 2]), ("a", "b", "c")), outputs=2)
    Traceback (most recent call last):
    pushcen.errors.DataError: halves: has labels from 0 to 2, which a model with 2 outputs cannot give: it needs 3
    """
    for labels in (data.labels, data.test_labels):
        if labels is not None and int(labels.max()) >= outputs:
            raise DataError(
                f"{data.name}: has labels from {int(labels.min())} to {int(labels.max())}, which a model with "
                f"{outputs} outputs cannot give: it needs {int(labels.max()) + 1}"
            )
