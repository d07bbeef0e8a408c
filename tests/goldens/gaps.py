"""Cases that do not pass, by id, each with the reason; the compatibility page shows them.

Strict: a case that passes although it is listed here fails the suite.
"""

from __future__ import annotations

GAPS: dict[str, str] = {}
