"""Where the modules of Python user functions are."""

from __future__ import annotations

from tidemill.config.option import Option

PYTHON_FILES = Option(
    key="python.files",
    kind=str,
    default="",
    doc="Modules of user functions, separated by commas: .py files, .zip or .whl archives, folders with "
    "modules in them. The folder of a script that is run, and the current one, need not be listed.",
)
OPTIONS = (PYTHON_FILES,)
