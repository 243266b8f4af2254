"""What `pushcen bench` measures: ratios of two things timed side by side in one process, and no seconds by themselves.

Plain, slow versions to compare with live here too; nothing outside imports them.
"""
