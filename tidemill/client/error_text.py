"""An error as a person reads it: what is wrong, the line of SQL with a caret below, what to do."""

from __future__ import annotations

from tidemill.errors import Position, TidemillError


def error_text(error: TidemillError, script: str) -> str:
    """Several lines, the last one ended; positions count in ``script``."""
    lines = [f"[{error.code}] {error.message}"]
    if error.position is not None:
        lines += _excerpt(script, error.position)
    return "\n".join([*lines, *error.advice]) + "\n"


def _excerpt(script: str, position: Position) -> list[str]:
    source = script.splitlines()
    if not 1 <= position.line <= len(source):
        return [f"  at {position}"]
    line = source[position.line - 1]
    number = f"{position.line:>5} | "
    # Tabs stay tabs under the line, so that the caret stands where the eye looks.
    indent = "".join("\t" if c == "\t" else " " for c in line[: position.column - 1])
    return [f"  at {position}:", number + line, " " * (len(number) - 2) + "| " + indent + "^"]
