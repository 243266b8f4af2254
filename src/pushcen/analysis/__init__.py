"""From run folders to tables, figures and pages. Nothing here runs anything."""

from pushcen.analysis.crossed import crossed, crossed_table
from pushcen.analysis.crossing import Crossing, cross
from pushcen.analysis.groups import Band, Group, group
from pushcen.analysis.report import ReportContent, draw_accuracy, write_report
from pushcen.analysis.run_tables import comparison, forecast_table, sweep, theory_table
from pushcen.analysis.statistics import Interval, interval, paired
from pushcen.analysis.table import Column, Table

__all__ = [
    "Band",
    "Column",
    "Crossing",
    "Group",
    "Interval",
    "ReportContent",
    "Table",
    "comparison",
    "cross",
    "crossed",
    "crossed_table",
    "draw_accuracy",
    "forecast_table",
    "group",
    "interval",
    "paired",
    "sweep",
    "theory_table",
    "write_report",
]
