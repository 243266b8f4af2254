"""What `pushcen bench` measures, a file for each part, and the plain versions to compare with.

Wherever there is something to compare with, speed is a ratio of two things timed side by side in one process. Only the
command line imports from here.
"""
