"""Runs and their folders: starting one or many, going on with them, and reading what they wrote, checked."""

from pushcen.runs.campaign import Report, RunJob, carry_out, one_by_one, report_of
from pushcen.runs.launch import launch
from pushcen.runs.plans import (
    PlannedRun,
    base_of,
    method_settings,
    parse_axes,
    place,
    plan_comparison,
    plan_sweep,
    point_label,
)
from pushcen.runs.run import Run, find_runs, identity_in
from pushcen.runs.store import RunStore, folder_for, folder_name, free_folder

__all__ = [
    "PlannedRun",
    "Report",
    "Run",
    "RunJob",
    "RunStore",
    "base_of",
    "carry_out",
    "find_runs",
    "folder_for",
    "folder_name",
    "free_folder",
    "identity_in",
    "launch",
    "method_settings",
    "one_by_one",
    "parse_axes",
    "place",
    "plan_comparison",
    "plan_sweep",
    "point_label",
    "report_of",
]
