"""Builds the compiled core with the package where there is a ``cargo``; all else is in ``pyproject.toml``.

Without ``cargo``, or if the build fails, the package has no core and uses NumPy and Arrow alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
CORE = ROOT / "tidemill" / "native" / "libtidemill_core.so"


def build_core() -> None:
    """Puts the library beside the modules that load it."""
    CORE.unlink(missing_ok=True)
    if sys.platform != "linux" or shutil.which("cargo") is None:
        return
    target = ROOT / "build" / "native"
    command = ["cargo", "build", "--release", "--offline", "--target-dir", str(target)]
    if subprocess.run(command, cwd=ROOT / "native", check=False).returncode == 0:
        shutil.copyfile(target / "release" / CORE.name, CORE)


class BuildPackage(build_py):
    def run(self) -> None:
        build_core()
        super().run()


class BuildWheel(bdist_wheel):
    """A wheel with the core fits every Python 3, on this kind of machine."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = not CORE.exists() and shutil.which("cargo") is None

    def get_tag(self) -> tuple[str, str, str]:
        platform = super().get_tag()[2]
        return "py3", "none", platform


setup(cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel})
