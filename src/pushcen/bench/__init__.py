"""What `pushcen bench` measures, a file for each part, and the plain versions to compare with.

Speed is a ratio of two things timed side by side in one process wherever there is something to stand beside. Nothing
in the package imports from here but the command line.
"""
