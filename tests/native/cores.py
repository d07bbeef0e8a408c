"""Tests of the compiled core are skipped where the package was installed without ``cargo``."""

from __future__ import annotations

import pytest

from tidemill.native.library import library

WITH_CORE = pytest.mark.skipif(
    library() is None, reason="NO COMPILED CORE IS TESTED: the package was installed without cargo"
)
