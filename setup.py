"""Builds the compiled core with the package where there is a ``cargo``; all else is in ``pyproject.toml``.

Without ``cargo``, or if the build fails, the package has no core and uses NumPy and Arrow alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).parent
CORE = ROOT / "tidemill" / "native" / "libtidemill_core.so"
CAN_BUILD = sys.platform == "linux" and shutil.which("cargo") is not None


class BuildPackage(build_py):
    """Puts the library beside the modules that load it."""

    def run(self) -> None:
        CORE.unlink(missing_ok=True)
        target = ROOT / "build" / "native"
        command = ["cargo", "build", "--release", "--offline", "--target-dir", str(target)]
        if CAN_BUILD and subprocess.run(command, cwd=ROOT / "native", check=False).returncode == 0:
            shutil.copyfile(target / "release" / CORE.name, CORE)
        super().run()


class BuildWheel(bdist_wheel):
    """A wheel with the core fits every Python 3. The core needs no symbol that has a version, so it loads
    where any manylinux wheel does."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2].replace("linux_", "manylinux2014_")


class Package(Distribution):
    def has_ext_modules(self) -> bool:
        """What makes a wheel one for this kind of machine."""
        return CAN_BUILD


setup(distclass=Package, cmdclass={"build_py": BuildPackage, "bdist_wheel": BuildWheel})
