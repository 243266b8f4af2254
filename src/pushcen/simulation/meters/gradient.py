"""The gradient at the reference model: the left side of the theorem, F there, and how much clients differ (zeta)."""

from typing import Any

from pushcen.simulation import scores
from pushcen.simulation.executors import Ticket
from pushcen.simulation.meters.meter import Meter, Reading
from pushcen.simulation.node import SimulatedClient


class GradientMeter(Meter):
    """The squared norm of grad F at the reference, over all training data of those online; own BatchNorm for each."""

    name = "gradient"
    needs_reference = True
    kept = ("norms", "first", "zeta")

    def __init__(self, engine: Any) -> None:
        super().__init__(engine)
        self.norms: list[float] = []
        self.first: float | None = None  # F at the first look
        self.zeta = 0.0

    def look(self, nodes: list[SimulatedClient], reference: Ticket | None) -> Reading:
        """Ask every client for its gradient, then for its distance from the mean of all."""
        if reference is None or not nodes:
            return Reading((), lambda _: {"gradient_norm2": None, "reference_objective": None, "zeta2": None})
        runs = self.engine.runs
        gradients = [node.proxy.ask("gradient", inputs=[reference]) for node in nodes]
        models = [(1 / len(nodes), "row")] * len(nodes)
        mean = runs.submit(nodes[0].index, [("add", models, True)], gradients)
        norm = runs.submit(nodes[0].index, [("norm2",)], [mean])
        apart = [runs.submit(node.index, [("apart",)], [own, mean]) for node, own in zip(nodes, gradients, strict=True)]
        return Reading([*gradients, norm, *apart], lambda found: self._finish(found, len(nodes)))

    def _finish(self, found: list[Any], count: int) -> dict[str, Any]:
        losses, norm, apart = found[:count], found[count], found[count + 1 :]
        objective = scores.mean(losses)
        if self.first is None:
            self.first = objective
        self.norms.append(norm)
        self.zeta = max(self.zeta, *apart)
        return {"gradient_norm2": norm, "reference_objective": objective, "zeta2": max(apart)}

    def summary(self) -> dict[str, Any]:
        """Give the mean over the rows, as the theorem has it."""
        return {
            "gradient_norm2": scores.mean(self.norms),
            "first_objective": self.first,
            "zeta2": self.zeta if self.norms else None,
        }
