"""How good a model is: metrics by name or of one's own, over a client's outputs or over those of many clients."""

from pushcen.learning.metrics.forms import mean_squared_error
from pushcen.learning.metrics.named import MEASURES, Metric, correct, metric_names, metrics_of, total_of, usual
from pushcen.learning.metrics.tallies import MOST, Scored, Tally, pooled

__all__ = [
    "MEASURES",
    "MOST",
    "Metric",
    "Scored",
    "Tally",
    "correct",
    "mean_squared_error",
    "metric_names",
    "metrics_of",
    "pooled",
    "total_of",
    "usual",
]
