"""The version, in a module of its own: `pushcen` itself imports what reads it."""

__version__ = "0.1.0"
