"""OVER. Others import ``operator`` (the spec); ``window`` evaluates functions over sorted rows."""
