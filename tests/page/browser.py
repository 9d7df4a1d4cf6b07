"""A real Chromium without a screen, driven through chromedriver's WebDriver protocol."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = None if CHROMIUM and DRIVER else "no chromium and chromedriver (apt install chromium chromium-driver)"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element's id in WebDriver's answers
_PATIENCE_S = 120


class Browser:
    """A session of WebDriver."""

    def __init__(self, address: str, profile: Path, *, scripts: bool) -> None:
        self._address = address
        options: dict[str, Any] = {"args": [*FLAGS, f"--user-data-dir={profile}"], "binary": CHROMIUM}
        if not scripts:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        always = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": always}})["sessionId"]
        self._address = f"{address}/session/{session}"

    def _ask(self, method: str, path: str, data: dict[str, Any] | None = None) -> Any:
        body = None if data is None else json.dumps(data).encode()
        request = urllib.request.Request(self._address + path, body, method=method)
        with urllib.request.urlopen(request, timeout=_PATIENCE_S) as answer:
            return json.load(answer)["value"]

    def open(self, page: Path, fragment: str = "") -> None:
        """Load a file, and forget what the console said before."""
        self.console()
        self._ask("POST", "/url", {"url": "about:blank"})  # or a fragment alone would load nothing
        self._ask("POST", "/url", {"url": page.as_uri() + fragment})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns; it is no part of the page, but what it adds to the page is held to its policy."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait_for(self, script: str) -> Any:
        """What a promise gives."""
        text = f"const done = arguments[arguments.length - 1]; ({script}).then(done, (fault) => done(String(fault)));"
        return self._ask("POST", "/execute/async", {"script": text, "args": []})

    def _element(self, selector: str) -> str:
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        return f"/element/{found[_ELEMENT]}"

    def click(self, selector: str) -> None:
        """Scroll to an element, and press it as a mouse does."""
        self._ask("POST", f"{self._element(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Type into an element; `\\ue007` is Enter."""
        self._ask("POST", f"{self._element(selector)}/value", {"text": text})

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """What the mouse does at a point of the window: Moved, Pressed, Released, Wheel."""
        params = {"type": f"mouse{kind}", "x": x, "y": y, **more}
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Input.dispatchMouseEvent", "params": params})
        if kind == "Wheel":  # which reaches the page with its next frame
            self.wait_for("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def save_to(self, folder: Path) -> None:
        """Where what the page saves goes."""
        params = {"behavior": "allow", "downloadPath": str(folder)}
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Browser.setDownloadBehavior", "params": params})

    def resize(self, width: int, height: int = 900) -> None:
        """The size of the page's window, in px; smaller than a window may be."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def colour_scheme(self, name: str) -> None:
        """What the person prefers: dark or light."""
        params = {"features": [{"name": "prefers-color-scheme", "value": name}]}
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": params})

    def media(self, name: str) -> None:
        """What the page is shown on: `print`, or the screen if empty."""
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"media": name}})

    def pages_on_paper(self) -> int:
        """How many pages of A4 it prints."""
        params = {"preferCSSPageSize": True}
        made = self._ask("POST", "/goog/cdp/execute", {"cmd": "Page.printToPDF", "params": params})
        return len(re.findall(rb"/Type /Page\b", base64.b64decode(made["data"])))

    def console(self) -> list[str]:
        """What came on the console since it was last asked for: errors, and what the page's policy forbade."""
        return [line["message"] for line in self._ask("POST", "/se/log", {"type": "browser"})]

    def close(self) -> None:
        self._ask("DELETE", "")


@contextmanager
def browser(profile: Path, *, scripts: bool = True) -> Iterator[Browser]:
    """A browser, as long as the block lasts; without `scripts` it runs none of a page."""
    driver = subprocess.Popen([str(DRIVER), "--port=0"], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout is not None
        port = next(found[1] for line in driver.stdout if (found := re.search(r"successfully on port (\d+)", line)))
        made = Browser(f"http://127.0.0.1:{port}", profile, scripts=scripts)
        try:
            yield made
        finally:
            made.close()
    finally:
        driver.terminate()
        driver.wait()
        driver.stdout.close()
