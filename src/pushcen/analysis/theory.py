"""The theorem's terms, as the meters of a run found them."""

from pushcen.analysis.table import Table
from pushcen.runs import Run


def theory_table(run: Run) -> Table:
    """List what a run measured of the paper's convergence theorem."""
    raise NotImplementedError
