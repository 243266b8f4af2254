"""Trackers: observers that hand a run's figures on to TensorBoard, MLflow, Weights & Biases, or a class of your own.

A tracker is made with the run's folder and its config as plain values, and has the four methods of
`pushcen.simulation.Observer`; inherit from `pushcen.simulation.Quiet` to write only those you need.
"""

from pushcen.tracking.observers import TRACKERS, Many, scalars, trackers

__all__ = ["TRACKERS", "Many", "scalars", "trackers"]
