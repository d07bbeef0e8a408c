"""The recipes of CONTRIBUTING.md, walked: per recipe the texts that it adds to a copy of the package."""
