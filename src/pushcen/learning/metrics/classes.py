"""Tallies of decisions: counts for F1 and balanced accuracy; for AUROC all scores, up to `MOST` numbers."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.functional import one_hot

from pushcen.learning.metrics.forms import Meaning, decisions
from pushcen.learning.metrics.tallies import MOST, Scored, Tally


@dataclass
class CountTally(Tally):
    """How often each class was right, said and true: macro F1, or balanced accuracy."""

    metric: str
    meaning: Meaning
    counts: Any = None
    """[right, said, true], of each class or label."""
    rows: int = 0
    single: bool = True
    """Whether each row has one right class; else every label is a decision of its own."""

    def update(self, batch: Scored) -> None:
        """Count a batch."""
        found = decisions(batch.outputs, batch.targets, self.meaning, self.metric)
        said, true, classes = found.said(self.metric), found.truth, found.scores.shape[1]
        if found.single:
            by_class = [torch.bincount(one, minlength=classes) for one in (true[said == true], said, true)]
        else:
            by_class = [one.sum(0) for one in (said & true, said, true)]
        self._add(torch.stack(by_class).cpu(), len(true), found.single)

    def merge(self, other: "CountTally") -> None:
        """Add the other's counts."""
        if other.counts is not None:
            self._add(other.counts, other.rows, other.single)

    def value(self) -> float:
        """Return the mean over classes that are there; over labels that are."""
        if self.counts is None:
            return math.nan
        right, said, true = self.counts.double()
        if alone := not self.single and len(right) == 1:  # yes and no are two classes
            no = self.rows - torch.stack([said + true - right, said, true])
            right, said, true = torch.cat([self.counts.double(), no], dim=1)
        if self.metric == "f1":
            there = said + true > 0
            return float((2 * right[there] / (said + true)[there]).mean())
        if self.single or alone:
            return float((right[true > 0] / true[true > 0]).mean())
        both = (true > 0) & (true < self.rows)
        no = self.rows - said - true + right
        return float(((right / true + no / (self.rows - true)) / 2)[both].mean())

    def _add(self, counts: torch.Tensor, rows: int, single: bool) -> None:
        self.counts = counts if self.counts is None else self.counts + counts
        self.rows += rows
        self.single = single


@dataclass
class RankTally(Tally):
    """Scores and what is true: the area under the ROC curve, one class against the rest, the mean over classes."""

    meaning: Meaning
    scores: list[torch.Tensor] = field(default_factory=list)
    truth: list[torch.Tensor] = field(default_factory=list)
    kept: int = 0

    def update(self, batch: Scored) -> None:
        """Keep a batch's scores; of two classes only their difference."""
        scores, truth, _ = decisions(batch.outputs, batch.targets, self.meaning, "auroc")
        if truth.dim() == 1 and scores.shape[1] == 2:
            scores, truth = scores[:, 1:].float() - scores[:, :1].float(), truth[:, None] == 1
        self._keep(scores.detach().float().cpu(), truth.cpu())

    def merge(self, other: "RankTally") -> None:
        """Add what the other keeps."""
        for scores, truth in zip(other.scores, other.truth, strict=True):
            self._keep(scores, truth)

    def value(self) -> float:
        """Return the area; a class that all rows or none of them have does not count."""
        if not self.scores:
            return math.nan
        scores, truth = torch.cat(self.scores).double(), torch.cat(self.truth)
        if truth.dim() == 1:
            scores, truth = scores.softmax(-1), one_hot(truth, scores.shape[1]) == 1
        areas = [auroc(scores[:, at], truth[:, at]) for at in range(scores.shape[1])]
        found = [area for area in areas if not math.isnan(area)]
        return math.fsum(found) / len(found) if found else math.nan

    def _keep(self, scores: torch.Tensor, truth: torch.Tensor) -> None:
        self.kept += scores.numel()
        if self.kept > MOST:
            raise ValueError(
                f"auroc keeps every score of the test data, and these are over {MOST:,}: f1 and balanced_accuracy only "
                "count"
            )
        if self.scores and (scores.shape[1] != self.scores[0].shape[1] or truth.dim() != self.truth[0].dim()):
            raise RuntimeError("scores of another form")
        self.scores.append(scores)
        self.truth.append(truth)


def auroc(scores: torch.Tensor, positive: torch.Tensor) -> float:
    """Return the area under the ROC curve: how often a positive has the higher score, and half of the ties.

    >>> auroc(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([False, False, True, True]))
    0.75
    >>> auroc(torch.tensor([0.1, 0.4]), torch.tensor([True, True]))
    nan
    """
    above = int(positive.sum())
    below = len(positive) - above
    if not above or not below or not bool(scores.isfinite().all()):
        return math.nan
    _, place, counts = torch.unique(scores, return_inverse=True, return_counts=True)
    ranks = (counts.cumsum(0) - (counts - 1) / 2.0).double()[place]
    return float((ranks[positive].sum() - above * (above + 1) / 2) / (above * below))
