"""Where the modules of Python user functions are."""

from __future__ import annotations

from tidemill.config.option import Option

PYTHON_FILES = Option(
    key="python.files",
    kind=str,
    default="",
    doc="Modules of user functions, separated by commas: .py files, .zip or .whl archives, folders "
    "with modules. The folder of the running script and the current folder need not be listed.",
)
OPTIONS = (PYTHON_FILES,)
