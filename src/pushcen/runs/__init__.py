"""Runs and their folders: starting one, going on with it, and reading what it wrote, checked."""

from pushcen.runs.launch import folder_for, folder_name, free_folder, launch, numbered
from pushcen.runs.run import Run, find_runs, identity_in
from pushcen.runs.sweeps import plan_comparison, plan_sweep

__all__ = [
    "Run",
    "find_runs",
    "folder_for",
    "folder_name",
    "free_folder",
    "identity_in",
    "launch",
    "numbered",
    "plan_comparison",
    "plan_sweep",
]
