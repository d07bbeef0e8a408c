"""Runs the README's first script with the installed command, and compares what it prints.

    python -I smoke_readme.py README.md

For a clean environment: uses the standard library and the ``tidemill`` beside this interpreter only. The
lines of standard error must be the job's log: no warning, no traceback.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LOG = re.compile(r"\d{4}-\d\d-\d\dT[\d:]+Z job [0-9a-f]{32} ")


def main(readme: str) -> int:
    blocks = _FENCE.findall(Path(readme).read_text(encoding="utf-8"))
    folder = tempfile.mkdtemp()
    shell = next(text for kind, text in blocks if kind == "sh" and "transfers.csv" in text)
    first = next(i for i, (kind, _) in enumerate(blocks) if kind == "sql")
    expected = blocks[first + 1][1]
    subprocess.run(["sh", "-ec", shell.replace("/tmp/tidemill", folder)], check=True)
    script = Path(folder) / "bank.sql"
    script.write_text(blocks[first][1].replace("/tmp/tidemill", folder), encoding="utf-8")
    command = [str(Path(sys.executable).parent / "tidemill"), "run", str(script)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    noise = [line for line in ran.stderr.splitlines() if not _LOG.match(line)]
    shown = [line for line in ran.stdout.splitlines() if line != "OK"]
    good = sorted(shown) == sorted(expected.splitlines()) and not noise and ran.returncode == 0
    if not good:
        sys.stdout.write(f"status {ran.returncode}\n{ran.stdout}\n{ran.stderr}\nexpected:\n{expected}")
    sys.stdout.write(f"README's script from the wheel: {'ok' if good else 'FAILED'}\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
