"""One client by the paper's equations: plain, slow, obvious, in float64. Nothing here is fast, and nothing is shared
with the package but the order in which random numbers are drawn.
"""

import copy

import numpy as np
import torch


def nearest(values, table):
    """Return the index of each value's nearest centroid, by a distance matrix."""
    return np.abs(values[:, None] - table[None, :]).argmin(axis=1)


def best_side(values, most):
    """Return the best centroids for positive values, with 0, 1, ... `most` of them beside a zero, and what they cost.

    By trying, for every number of cells and every end, every beginning of the last cell.
    """
    x = np.sort(values)
    n = x.size
    cost = [[float((x[:j] ** 2).sum()) for j in range(n + 1)]]
    begins = []
    for _ in range(most):
        row, start = [], []
        for j in range(n + 1):
            tries = [cost[-1][i] + (((x[i:j] - x[i:j].mean()) ** 2).sum() if j > i else 0.0) for i in range(j + 1)]
            start.append(int(np.argmin(tries)))
            row.append(float(tries[start[-1]]))
        cost.append(row)
        begins.append(start)
    found = []
    for k in range(most + 1):
        centroids, end = [], n
        for level in range(k, 0, -1):
            begin = begins[level - 1][end]
            centroids.append(x[begin:end].mean() if end > begin else np.nan)
            end = begin
        found.append((np.array(centroids[::-1]), cost[k][n]))
    return found


def optimum(values, clusters, start):
    """The best table for a layer. Zero sits where the dictionary has it, else in the middle, if it costs under 1 %."""
    below, above = best_side(-values[values < 0], clusters - 1), best_side(values[values > 0], clusters - 1)
    cost = [below[zero][1] + above[clusters - 1 - zero][1] for zero in range(clusters)]
    zero = clusters // 2 if start is None else int(np.abs(start).argmin())
    if cost[zero] > 1.01 * min(cost):
        zero = int(np.argmin(cost))
    table = np.concatenate([-below[zero][0][::-1], [0.0], above[clusters - 1 - zero][0]])
    assert np.isfinite(table).all(), "this layer is too small for a test: a centroid has no member"
    return table, nearest(values, table), zero


def three_iterations(values, clusters, start, rng):
    """Algorithm 4 as it is written, with T_max = 3; an empty cluster keeps its centroid."""
    rest = start[1:] if start is not None else values[rng.choice(values.size, clusters - 1, replace=False)]
    mu = np.array([0.0, *rest])
    for _ in range(3):
        a = nearest(values, mu)
        for j in range(1, clusters):
            if (a == j).any():
                mu[j] = values[a == j].mean()
        mu[0] = 0.0
    order = np.argsort(mu, kind="stable")
    place = np.argsort(order)
    return mu[order], place[a], int(place[0])


class Plain:
    """A twin of a `Learner`: `event` does what a compute event must do."""

    def __init__(
        self,
        model,
        data,
        training,
        *,
        seed,
        clusters=0,
        strength=0.01,
        scale="sum",
        masked=True,
        profile="default",
        feedback=True,
    ):
        self.model = copy.deepcopy(model).double()
        self.inputs, self.targets = data[0].double(), data[1]
        self.t = training
        self.clusters, self.strength, self.scale, self.masked, self.profile = clusters, strength, scale, masked, profile
        self.batches, self.clustering = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3)[:2])
        self.dictionary = {}
        self.memory = {}
        self.feedback, self.left = feedback, {}
        self.kept = 1.0

    @property
    def parameters(self):
        return dict(self.model.named_parameters())

    @property
    def layers(self):
        return [name for name, p in self.parameters.items() if p.dim() > 1]

    def wcp(self, name, left=0.0):
        """Weight Clustering Pruning of one layer, with what is left of it: table, indices, zero index."""
        values = self.parameters[name].detach().numpy().ravel()
        values = (values + left).clip(values.min(), values.max())
        start = self.dictionary.get(name)
        if self.profile == "paper":
            return three_iterations(values, self.clusters, start, self.clustering)
        return optimum(values, self.clusters, start)

    def encode(self):
        """What a receiver will read: every tensor decoded, and the tables."""
        tensors = {name: p.detach().numpy().copy() for name, p in self.parameters.items()}
        tables = {}
        for name in self.layers if self.clusters else []:
            weights, left = tensors[name].ravel(), self.left.get(name, 0.0)
            tables[name], indices, _ = self.wcp(name, left)
            if self.feedback:  # what rounding took off is sent with the next
                self.left[name] = (weights + left).clip(weights.min(), weights.max()) - tables[name][indices]
            tensors[name] = tables[name][indices].reshape(tensors[name].shape)
        return tensors, tables

    def merge(self, own, messages, adopts):
        """Eqs. (pushsum-mass), (pushsum-model), (pushsum-pool): `messages` are (weight, (tensors, tables))."""
        total = own + sum(weight for weight, _ in messages)
        for name, p in self.parameters.items():
            mean = (own / total) * p.detach().numpy()
            for weight, (tensors, _) in messages:
                mean = mean + (weight / total) * tensors[name]
            p.data = torch.from_numpy(mean)
        if adopts:
            self.memory, self.dictionary, self.left = {}, {}, {}
        for name in self.layers if self.clusters else []:
            tables = [(weight, tables[name]) for weight, (_, tables) in messages]
            if name in self.dictionary:
                tables.append((own, self.dictionary[name]))
            if tables:
                pooled = sum(weight * table for weight, table in tables) / sum(weight for weight, _ in tables)
                if self.profile == "default":
                    pooled[np.abs(pooled).argmin()] = 0.0
                self.dictionary[name] = pooled

    def train(self):
        """Algorithm 2: anchor, mask, and steps on loss + lambda * ||w - anchor||^2, by autograd."""
        anchors, masks = {}, {}
        if self.clusters and (self.strength or self.masked):
            for name in self.layers:
                table, indices, zero = self.wcp(name)
                shape = self.parameters[name].shape
                anchor = self.dictionary.get(name, table)[indices]
                mask = (indices != zero).astype(float)
                if self.masked:
                    masks[name] = torch.from_numpy(mask.reshape(shape))
                    anchor = anchor * mask
                if self.strength:
                    anchors[name] = torch.from_numpy(anchor.reshape(shape))
            if self.masked:
                self.kept = float(sum(m.sum() for m in masks.values()) / sum(m.numel() for m in masks.values()))
        losses = []
        self.prune(masks)
        for _ in range(self.t.epochs):
            order = torch.from_numpy(self.batches.permutation(len(self.targets)))
            for rows in order.split(self.t.batch):
                if len(rows) < self.t.batch <= len(order):
                    continue
                loss = torch.nn.functional.cross_entropy(self.model(self.inputs[rows]), self.targets[rows])
                whole = loss
                for name, anchor in anchors.items():
                    square = (self.parameters[name] - anchor) ** 2
                    whole = whole + self.strength * (square.sum() if self.scale == "sum" else square.mean())
                names, ps = zip(*self.parameters.items(), strict=True)
                for name, p, g in zip(names, ps, torch.autograd.grad(whole, ps), strict=True):
                    p.data = self.stepped(name, p.detach(), g)
                self.prune(masks)
                losses.append(loss.item())
        return sum(losses) / len(losses)

    def prune(self, masks):
        for name, mask in masks.items():
            self.parameters[name].data = self.parameters[name].detach() * mask

    def stepped(self, name, w, g):
        """One step of SGD with momentum, Adam or AdamW, by its formula."""
        t, memory = self.t, self.memory.setdefault(name, {"step": 0, "m": 0.0, "v": 0.0})
        memory["step"] += 1
        if t.optimiser == "adamw":
            w = w - t.lr * t.weight_decay * w
        else:
            g = g + t.weight_decay * w
        if t.optimiser == "sgd":
            memory["m"] = t.momentum * memory["m"] + g
            return w - t.lr * memory["m"]
        memory["m"] = 0.9 * memory["m"] + 0.1 * g
        memory["v"] = 0.999 * memory["v"] + 0.001 * g**2
        m, v = memory["m"] / (1 - 0.9 ** memory["step"]), memory["v"] / (1 - 0.999 ** memory["step"])
        return w - t.lr * m / (v.sqrt() + 1e-8)

    def event(self, own, messages, adopts=False):
        if messages:
            self.merge(own, messages, adopts)
        return self.train()


class PlainFragments(Plain):
    """DivShare: what is sent is cut, and each coordinate is (own + sum) / (1 + count)."""

    def __init__(self, *args, parts, cut_seed=0, **options):
        super().__init__(*args, **options)
        self.parts, self.cut_seed = parts, cut_seed

    def part_of(self, coordinate):
        """Return the part (from 1) of a coordinate: its group of `parts` is dealt out from where a hash begins."""
        group, place = divmod(coordinate, self.parts)
        wrap = 2**64 - 1
        z = (self.cut_seed + (group + 1) * 0x9E3779B97F4A7C15) & wrap
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & wrap
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & wrap
        return (place - (z ^ (z >> 31))) % self.parts + 1

    def merge(self, own, messages, adopts):
        coordinate = 0
        for name, p in self.parameters.items():
            row = p.detach().numpy().ravel().copy()
            for i in range(row.size):
                held = [tensors[name].ravel()[i] for part, (tensors, _) in messages if part == self.part_of(coordinate)]
                row[i] = (row[i] + sum(held)) / (1 + len(held))
                coordinate += 1
            p.data = torch.from_numpy(row.reshape(p.shape))
