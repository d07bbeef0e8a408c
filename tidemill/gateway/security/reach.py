"""What each user's statements may reach, by the gateway's options.

    tidemill.gateway.allowed-paths = /data/all; /data/{user}; ann=s3://ann

What the gateway keeps for itself is closed to everybody: its directory, its store, the users, keys, logs, the
checkpoints of its jobs, and what it keeps meanwhile.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator

import sqlalchemy as sa

from tidemill.config import gateway_options as g
from tidemill.config import history_options
from tidemill.config.execution_options import CHECKPOINT_DIRECTORY
from tidemill.config.option import Configuration, Option
from tidemill.config.table_options import CATALOG_STORE_PATH
from tidemill.errors import SetupError
from tidemill.files.fence import ANY, Fence
from tidemill.files.private import OWN
from tidemill.session.permissions import Permissions

_ENTRY = re.compile(r"(?:([^/=]+)=)?(.*)", re.DOTALL)
_USER = "{user}"
_SIDES = ("", "-journal", "-shm", "-wal")
"""What SQLite has beside a database."""
_FILES = (
    g.USERS_FILE,
    g.TLS_CERTIFICATE,
    g.TLS_KEY,
    g.AUDIT_FILE,
    g.KEY_FILE,
    CHECKPOINT_DIRECTORY,
    CATALOG_STORE_PATH,
    history_options.DIRECTORY,
)


def check_reach(config: Configuration) -> None:
    """SetupError where users are asked for, and nobody has said what they may reach, or not rightly."""
    for option in (g.ALLOWED_PATHS, g.ALLOWED_CONNECTORS):
        if asks(config) and not config.read(option).strip():
            raise SetupError(
                f"'{g.AUTHENTICATION.key}' is PASSWORD: set '{option.key}', which says what users may reach.",
                hint="'*' is everything except the gateway's own files; see docs/gateway.md.",
            )
    for _, path in _entries(config, g.ALLOWED_PATHS):
        if path != ANY and not path.startswith("/") and "://" not in path:
            raise SetupError(f"'{g.ALLOWED_PATHS.key}': '{path}' is neither an absolute path nor a URI.")


def asks(config: Configuration) -> bool:
    """Whether users say who they are."""
    return config.read(g.AUTHENTICATION).upper() == "PASSWORD"


def reach_of(config: Configuration, user: str, directory: str) -> Permissions:
    """``directory``: the gateway's."""
    limited = asks(config)
    code = config.read(g.USER_CODE).lower() or ("false" if limited else "true")
    modules = tuple(_of_user(config, g.ALLOWED_MODULES, user)) if code == "true" else ()
    return Permissions(
        fence=Fence(
            closed=(directory, *closed_places(config)), allowed=tuple(_of_user(config, g.ALLOWED_PATHS, user))
        ),
        connectors=tuple(_of_user(config, g.ALLOWED_CONNECTORS, user)),
        modules=modules,
        spark=not limited,
    )


def closed_places(config: Configuration) -> Iterator[str]:
    """Outside of the gateway's directory."""
    yield from filter(None, map(config.read, _FILES))
    yield os.path.join(tempfile.gettempdir(), OWN)
    store = sa.make_url(config.read(g.STORE) or "sqlite://")
    if store.get_backend_name() == "sqlite" and store.database:
        yield from (store.database.partition("?")[0] + side for side in _SIDES)


def _of_user(config: Configuration, option: Option[str], user: str) -> Iterator[str]:
    """The entries that are for ``user``; a name that would lead out of a folder stands for none."""
    name = user if user not in ("", ".", "..") and "/" not in user and "\\" not in user else ""
    for whose, text in _entries(config, option):
        if whose in ("", user) and (name or _USER not in text):
            yield text.replace(_USER, name)


def _entries(config: Configuration, option: Option[str]) -> Iterator[tuple[str, str]]:
    """Each with the user whose it is, '' for all. What is not set is anything."""
    for text in (config.read(option).strip() or ANY).split(";"):
        match = _ENTRY.fullmatch(text.strip())
        if match is not None and match[2]:
            yield (match[1] or "").strip(), match[2].strip()
