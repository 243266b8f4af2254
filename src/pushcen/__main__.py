"""`python -m pushcen`: the same as `pushcen`."""

from pushcen.cli import app

app()
