"""A script file: its text with ``${NAME}`` put in, and its statements one by one."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from tidemill.errors import ConnectorError

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")


def read_script(file: str, variables: Mapping[str, str]) -> str:
    """The text with variables put in; ``${DIR}`` is the script's own folder.

    Raises ConnectorError where the file cannot be read. Names that are not given stay as they are (a
    pattern of REGEXP_REPLACE has such), which is said on standard error.
    """
    path = Path(file)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8 text"
        raise ConnectorError(f"Cannot read script '{file}': {reason}") from e
    for name, value in {"DIR": str(path.resolve().parent), **variables}.items():
        text = text.replace("${" + name + "}", value)
    for name in dict.fromkeys(_VARIABLE.findall(text)):
        sys.stderr.write(f"Warning: {file} has ${{{name}}}, which is not set; -V {name}=... sets it.\n")
    return text


def check_scripts(*files: str) -> None:
    """ConnectorError where one of them is not there."""
    for file in files:
        if not Path(file).exists():
            raise ConnectorError(f"Cannot read script '{file}': No such file or directory")


def script_folders(*files: str) -> tuple[str, ...]:
    """The folders of scripts, each once."""
    return tuple(dict.fromkeys(str(Path(file).resolve().parent) for file in files))
