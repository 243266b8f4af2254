"""Runs and their folders: starting one, going on with it, and reading what it wrote, checked."""

from pushcen.runs.launch import carry_out, draw, folder_name, free_folder, launch, numbered
from pushcen.runs.run import Run, identity_in
from pushcen.runs.sweeps import folder_for, plan_comparison, plan_sweep

__all__ = [
    "Run",
    "carry_out",
    "draw",
    "folder_for",
    "folder_name",
    "free_folder",
    "identity_in",
    "launch",
    "numbered",
    "plan_comparison",
    "plan_sweep",
]
