"""A row with the version of another table as of the row's time: the face is ``operator``."""
