"""The console's files: a page, its styles and its modules, as they lie in ``tidemill/gateway/console``.

They hold nothing of anybody: who may ask for what is asked where the page asks for data. A browser runs no
script that is not one of these files, and sends nothing elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

HOME = "/console/"
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    tag: str


@dataclass(frozen=True, slots=True)
class Console:
    """The console's files in memory, by path: a request's path never reaches the disk."""

    files: Mapping[str, _File]

    @classmethod
    def read(cls) -> Console:
        console_files = dict(_files(files("tidemill").joinpath("gateway", "console"), ""))
        return cls({"": console_files["index.html"], **console_files})

    async def answer(self, request: Request) -> Response:
        file = self.files.get(request.path_params.get("path", ""))
        if file is None:
            return Response("Not found.", status_code=404, media_type="text/plain", headers=HEADERS)
        headers = {**HEADERS, "ETag": file.tag}
        if request.headers.get("if-none-match") == file.tag:
            return Response(status_code=304, headers=headers)
        return Response(file.content, headers={**headers, "Content-Type": file.media_type})


async def go_home(request: Request) -> Response:
    return RedirectResponse(HOME, headers=HEADERS)


def _files(folder: Traversable, path: str) -> list[tuple[str, _File]]:
    console_files: list[tuple[str, _File]] = []
    for entry in folder.iterdir():
        if entry.is_dir():
            console_files += _files(entry, f"{path}{entry.name}/")
            continue
        kind = _TYPES.get(entry.name[entry.name.rfind(".") :])
        if kind is not None:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            console_files.append((f"{path}{entry.name}", _File(content, kind, tag)))
    return console_files
