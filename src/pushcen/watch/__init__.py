"""A page in the browser that shows runs, while they go on and afterwards: network, curves, mass, influence, log."""

from pushcen.watch.export import write_page
from pushcen.watch.source import Watch

__all__ = ["Watch", "write_page"]
