"""Worlds like real ones: what a user measured elsewhere, and brings as a file or a function."""
