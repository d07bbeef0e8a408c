"""A browser without a window, driven by its DevTools protocol over two pipes.

Chromium speaks it on its file descriptors 3 and 4 (``--remote-debugging-pipe``), JSON with a zero byte after
each message: no port, no other program. What a page waits for is waited for within the page.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-headless-shell", "google-chrome")
MISSING = "there is no browser: run scripts/install_browser.sh, or name one in TIDEMILL_BROWSER"
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
    "about:blank",
)
_SECONDS = 300.0
"""A machine that does much else may take minutes for a query's first rows."""
_LEFT = "navigated or closed"
_KEYS = {
    "Enter": (13, "\r"),
    "Escape": (27, ""),
    "Tab": (9, ""),
    "ArrowDown": (40, ""),
    "ArrowUp": (38, ""),
    "ArrowLeft": (37, ""),
    "ArrowRight": (39, ""),
}
ALT, CONTROL, SHIFT = 1, 2, 8


def found_browser() -> str | None:
    return os.environ.get("TIDEMILL_BROWSER") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser(program: str, folder: Path) -> Iterator[Browser]:
    """``folder``: for what it keeps while it runs."""
    to_child, commands = os.pipe()
    answers, from_child = os.pipe()
    child = os.posix_spawn(
        program,
        [program, f"--user-data-dir={folder}", *_FLAGS],
        {**os.environ, "HOME": str(folder)},
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, to_child, 3),
            (os.POSIX_SPAWN_DUP2, from_child, 4),
        ],
        setsid=True,
    )
    os.close(to_child)
    os.close(from_child)
    try:
        yield Browser(commands, answers)
    finally:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(commands)
        os.close(answers)


@dataclass
class Browser:
    """Messages in the order in which they are sent; events are kept until somebody asks for them."""

    commands: int
    answers: int
    _number: int = 0
    _held: bytearray = field(default_factory=bytearray)
    _events: list[dict[str, Any]] = field(default_factory=list)

    def page(self) -> Page:
        """A new page, with nothing of any other's cookies and storage."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        target = self.send("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.send(f"{domain}.enable")
        return page

    def send(self, method: str, session: str = "", **parameters: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self._events.append(answer)

    def events(self, session: str, method: str) -> list[Any]:
        """What has happened so far."""
        return [e["params"] for e in self._events if e.get("sessionId") == session and e["method"] == method]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._held:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else b""
            assert data, "the browser does not answer"
            self._held += data
        message, _, rest = bytes(self._held).partition(b"\0")
        self._held = bytearray(rest)
        found: dict[str, Any] = json.loads(message)
        return found


@dataclass(frozen=True)
class Page:
    browser: Browser
    session: str

    def send(self, method: str, **parameters: Any) -> Any:
        return self.browser.send(method, self.session, **parameters)

    def go(self, url: str) -> None:
        self.send("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def ask(self, script: str) -> Any:
        """The value of an expression, as JSON has it; of a promise what it gives."""
        answer = self.send(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> Any:
        """The condition's value when it is true; AssertionError, with the page's text, if it never is."""
        script = f"""new Promise((resolve) => {{
            const end = Date.now() + {int(_SECONDS * 600)};
            const look = () => {{
                let found = false;
                try {{ found = {condition}; }} catch {{ /* not yet */ }}
                if (found || Date.now() > end) resolve(found instanceof Node ? true : found || null);
                else setTimeout(look, 20);
            }};
            look();
        }})"""
        found = self._in_the_page_that_comes(script)
        assert found, f"never: {condition}\n{self.ask('document.body.innerText')}"
        return found

    def _in_the_page_that_comes(self, script: str) -> Any:
        """As ``ask``, once more in the page that takes this one's place meanwhile."""
        try:
            return self.ask(script)
        except AssertionError as e:
            if _LEFT not in str(e):
                raise
            return self.ask(script)

    def text(self, selector: str = "body") -> str:
        return str(self.ask(f"document.querySelector({json.dumps(selector)}).innerText"))

    def click(self, selector: str, word: str = "") -> None:
        """Where the user would: the middle of the first element, or of that with this text in it."""
        find = (
            f"[...document.querySelectorAll({json.dumps(selector)})]"
            f".find((e) => e.innerText.includes({json.dumps(word)}) && e.getClientRects().length)"
        )
        # Found and looked at in one: the page may be drawn anew between two.
        place = self.wait(
            f"(() => {{ const e = {find}; if (!e) return null; e.scrollIntoView({{block: 'center'}});"
            "const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1
            )

    def type(self, text: str) -> None:
        self.send("Input.insertText", text=text)

    def press(self, key: str, modifiers: int = 0) -> None:
        code, text = _KEYS.get(key, (ord(key.upper()[0]), key))
        for kind in ("keyDown", "keyUp"):
            written = {"text": text} if kind == "keyDown" and text and not modifiers & ~SHIFT else {}
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                windowsVirtualKeyCode=code,
                modifiers=modifiers,
                **written,
            )

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )

    def theme(self, name: str) -> None:
        """What the system prefers: ``light`` or ``dark``."""
        feature = {"name": "prefers-color-scheme", "value": name}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, file: Path) -> None:
        file.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """Errors of scripts, and what the browser has refused; not what a server has."""
        thrown = self.browser.events(self.session, "Runtime.exceptionThrown")
        logged = self.browser.events(self.session, "Log.entryAdded")
        return [str(e["exceptionDetails"]) for e in thrown] + [
            str(e["entry"]["text"])
            for e in logged
            if e["entry"]["level"] == "error" and e["entry"]["source"] != "network"
        ]

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        sent = self.browser.events(self.session, "Network.requestWillBeSent")
        return [str(e["request"]["url"]) for e in sent]
