"""Task functions that come with pushcen."""
