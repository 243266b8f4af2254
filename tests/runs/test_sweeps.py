"""Plans of several runs."""

import pytest

from pushcen.config import load_config
from pushcen.errors import OptionError
from pushcen.runs.sweeps import plan_sweep


def test_seeds_are_no_axis_of_a_sweep():
    with pytest.raises(OptionError, match="--seeds"):
        plan_sweep(lambda more: load_config("digits", more), ["seed=0,1,2"], 1)
