"""From run folders to tables, figures and pages. Nothing here runs anything."""

from pushcen.analysis.groups import Band, Group, group
from pushcen.analysis.stats import Interval, interval, paired
from pushcen.analysis.table import Column, Table
from pushcen.analysis.tables import comparison, sweep

__all__ = ["Band", "Column", "Group", "Interval", "Table", "comparison", "group", "interval", "paired", "sweep"]
