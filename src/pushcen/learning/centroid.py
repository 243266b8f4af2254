"""PushCen's local update (the paper's Algorithms 2 and 3): anchor, mask, dictionary, centroids on the wire."""

import warnings
from collections.abc import Callable, Iterable

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from pushcen.checks import check_choice, check_number
from pushcen.codec import Centroids, Codec, Payload, Schema, cluster
from pushcen.codec.clustering import Profile
from pushcen.learning.dictionary import Tables, TableSum, with_zero
from pushcen.learning.modules import tables_of
from pushcen.learning.noise import unseen
from pushcen.learning.one_pass import one_pass
from pushcen.learning.pull import Pull, Pulls
from pushcen.learning.training import TrainingOptions
from pushcen.learning.untrained import UntrainedZeros, nearly_all
from pushcen.learning.update import Update
from pushcen.learning.work import State, named, part_of


class CentroidUpdate(Update):
    """Training that keeps weights near a few centroids, which the neighbourhood shares.

    `strength` is lambda in the paper; `scale` says whether it weighs each layer's sum of squares, or their mean.
    `mask` holds pruned weights at zero during training, but not those that are zero for want of training. With
    `feedback`, what rounding takes off one message is added to the next, so that what is sent is right on average,
    however little training moves between two messages. An embedding is not pulled: most of its rows have no gradient of
    their own in a step, and Adam would make full steps of the pull alone. With the paper's profile it is, and the
    dictionary is used as it was averaged, WCP is three iterations from it, and what starts at zero stays there; by
    default its entry nearest zero is zero, and WCP is the optimum.
    """

    def __init__(
        self,
        clusters: int = 32,
        strength: float = 0.01,
        scale: str = "sum",
        mask: bool = True,
        profile: Profile = "default",
        feedback: bool = True,
    ) -> None:
        Centroids(clusters, profile)  # refuses what cannot be
        check_number("strength", strength)
        check_choice("scale", scale, ("sum", "mean"))
        self._clusters, self._strength, self._scale, self._profile = clusters, strength, scale, profile
        self._masked, self._feedback = mask, feedback
        self._table: Tables | None = None
        self._open, self._taken = TableSum(), TableSum()
        self._pulls = Pulls()
        self._untrained = UntrainedZeros()
        self._told: set[str] = set()
        self._looked_up: set[str] = set()
        self._kept = 1.0

    def prepare(self, schema: Schema, training: TrainingOptions, rng: np.random.Generator) -> None:
        """Learn what is shared; warn if the learning rate is beyond what the paper's theorem allows."""
        self.schema, self._rng = schema, rng
        strongest = max((self._layer_strength(entry.size) for entry in schema.clustered), default=0.0)
        if training.lr * 4 * strongest > 1:
            warnings.warn(
                f"training.lr = {training.lr}: the theorem asks for at most 1 / (4 lambda) = {1 / (4 * strongest):.3g}",
                stacklevel=2,
            )

    def meet(self, model: nn.Module) -> None:
        """Note which weights start at zero, and which are looked up; warn where the paper's rules hold them at zero."""
        super().meet(model)
        if self._profile == "default":
            self._looked_up = set(tables_of(model))
        if self._masked:
            self._untrained.note(self.schema, model)
        if self._profile == "paper":
            for name, zeros in self._untrained.layers.items():
                self._warn(name, int(torch.count_nonzero(zeros)), zeros.numel())
            self._untrained.layers.clear()

    def fold(self, weight: int, payload: Payload) -> None:
        """Add a table to those of the next event."""
        self._open.add(weight, payload.codec.tables(payload.schema, payload.body))

    def take(self) -> None:
        """Hand what has been folded so far to the event that begins."""
        self._taken, self._open = self._open, TableSum()

    def put_back(self) -> None:
        """Undo `take`."""
        self._taken.merge(self._open)
        self._open, self._taken = self._taken, TableSum()

    def merge(self, own: int, messages: Iterable[tuple[int, Payload]]) -> None:
        """Average the dictionaries by the weights of the models; an empty one has no say."""
        pool, self._taken = self._taken, TableSum()
        if own and self._table is not None:
            pool.add(own, self._table)
        for weight, payload in messages:
            pool.add(weight, payload.codec.tables(payload.schema, payload.body))
        if pool.weight:
            self._table = pool.mean() if self._profile == "paper" else with_zero(pool.mean())

    def reset(self) -> None:
        """Forget the dictionary, and what rounding took off."""
        super().reset()
        self._table = None

    @property
    def dictionary(self) -> dict[str, torch.Tensor]:
        """Each clustered layer's table (G in the paper), by name; empty before there was a message."""
        if self._table is None:
            return {}
        rows = zip(self.schema.clustered, self._table, strict=True)
        return {entry.name: torch.from_numpy(row) for entry, row in rows}

    def start(self, model: nn.Module) -> None:
        """Cluster the merged weights, for the anchor and the mask of this event; prune."""
        self._pulls = Pulls()
        if not (self._strength or self._masked):
            return
        layers, pruned, total, dictionary = list[Pull](), 0, 0, self.dictionary
        with unseen():
            for entry, tensor in zip(self.schema.entries, self.schema.tensors(model), strict=True):
                if not (entry.clustered and entry.size):
                    continue
                weights, table = tensor.detach(), dictionary.get(entry.name)
                if table is not None and self._profile == "default" and not table.any():
                    table = None  # neighbours that have no values yet say nothing of where values should be
                found = cluster(weights, self._clusters, start=table, profile=self._profile, rng=self._rng)
                values = found.centroids.clone() if table is None else table.to(weights.device, copy=True)
                if self._masked:
                    values[found.zero_index] = 0.0  # a pruned weight is anchored at zero
                strength = 0.0 if entry.name in self._looked_up else 2 * self._layer_strength(entry.size)
                layer = Pull(tensor, found.indices, values, found.zero_index, strength)
                layers.append(layer)
                pruned += self._prune(entry.name, layer) if self._masked else 0
                total += entry.size
            self._pulls = Pulls(layers)
        self._kept = 1 - pruned / total if total else 1.0
        self.after_step()

    def _prune(self, name: str, layer: Pull) -> int:
        """Count what the mask holds at zero, and let go of what is there for want of training."""
        pruned, size = layer.pruned(), layer.weights.numel()
        if self._profile == "default" and self._untrained.may_be_in(name, pruned, size):
            layer.release(self._untrained.among(name, layer.weights, layer.indices == layer.zero))
            pruned = layer.pruned()
        elif self._profile == "paper" and nearly_all(pruned, size):
            self._warn(name, pruned, size)
        return pruned

    def _warn(self, name: str, zeros: int, size: int) -> None:
        if name not in self._told:
            self._told.add(name)
            warnings.warn(
                f"{name}: {zeros} of its {size} weights are zero and stay so: the paper's mask holds what is zero; "
                "method.profile = default or method.mask = false would train it",
                stacklevel=2,
            )

    def before_step(self) -> None:
        """Add the regulariser's gradient."""
        with unseen():
            self._pulls.add_gradients()

    def after_step(self) -> None:
        """Hold pruned weights at zero, whatever the optimiser's momentum says."""
        if self._masked:
            with unseen():
                self._pulls.mask()

    def one_pass(self, optimiser: Optimizer) -> Callable[[], bool] | None:
        """Return Adam's steps with pull and mask, unless a subclass has other ways of these."""
        own = (type(self).before_step, type(self).after_step)
        usual = own == (CentroidUpdate.before_step, CentroidUpdate.after_step)
        return one_pass(self._pulls, optimiser, mask=self._masked) if usual else None

    def end(self) -> None:
        """Release indices and anchors."""
        self._pulls = Pulls()

    def codecs(self) -> dict[int, Codec]:
        """Send centroids and indices."""
        return {0: Centroids(self._clusters, self._profile, self.dictionary, self._rng, self._feedback)}

    @property
    def density(self) -> float:
        """The share of clustered weights that were trained."""
        return self._kept

    def flops(self, steps: int) -> float:
        """Count two clusterings, and what regulariser and mask cost at every step.

        A clustering by histogram adds each weight up once and compares it once: 4 operations a weight, with the bin's
        number; three iterations of Lloyd with K centroids take 3 K distances and comparisons instead (6 K). The
        regulariser takes 3 a step, the mask 1. Feedback adds what was left and takes off what is sent: 2.
        """
        weights = sum(entry.size for entry in self.schema.clustered)
        pulled = sum(entry.size for entry in self.schema.clustered if entry.name not in self._looked_up)
        clustering = 6 * self._clusters if self._profile == "paper" else 4
        clusterings = 1 + bool(self._strength or self._masked)
        each = clusterings * clustering + steps * bool(self._masked) + 2 * bool(self._feedback)
        return float(weights * each + 3 * pulled * steps * bool(self._strength))

    def save(self, whole: bool = True) -> State:
        """Return the dictionary, what rounding took off, and what was folded."""
        tensors, plain = super().save(whole)
        if self._table is not None:
            tensors["dictionary"] = torch.from_numpy(self._table)
        tensors |= named("untrained", self._untrained.layers)
        for name, pool in (("open", self._open), ("taken", self._taken)):
            if whole and pool.weight:
                tensors[name], plain[name] = torch.from_numpy(pool.total), pool.weight
        return State(tensors, plain)

    def restore(self, state: State) -> None:
        """Take over what `save` returned."""
        super().restore(state)
        tensors, plain = state
        self._table = tensors["dictionary"].numpy().copy() if "dictionary" in tensors else None
        self._untrained.layers = {name: zeros.clone() for name, zeros in part_of("untrained", tensors).items()}
        self._open, self._taken = (
            TableSum(tensors[name].numpy().copy(), plain[name]) if name in plain else TableSum()
            for name in ("open", "taken")
        )

    def _layer_strength(self, size: int) -> float:
        return self._strength if self._scale == "sum" else self._strength / size
