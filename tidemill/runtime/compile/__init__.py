"""Physical stream plan -> exec graph. Each operator's module registers its translation with ``shared.build``.

The package finds its modules, so that the import of any of them registers all translations.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
