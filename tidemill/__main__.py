"""``python -m tidemill`` is the command ``tidemill``."""

from __future__ import annotations

import sys

from tidemill.client.main import main

if __name__ == "__main__":
    sys.exit(main())
