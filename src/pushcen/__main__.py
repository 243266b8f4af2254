"""`python -m pushcen`: the same as `pushcen`."""

from pushcen.cli import app

if __name__ == "__main__":
    app()
