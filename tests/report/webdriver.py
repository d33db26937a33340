"""The few commands of the W3C WebDriver protocol that the browser tests need, over chromedriver."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def find_browser() -> tuple[str, str] | None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


class Browser:
    """One headless Chromium window of a given size."""

    def __init__(self, width: int, height: int = 900, dark: bool = False) -> None:
        found = find_browser()
        assert found is not None, "no browser"
        self._profile = tempfile.mkdtemp(prefix="restore-browser-")
        self._server = subprocess.Popen(
            [found[1], "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._base = f"http://127.0.0.1:{self._port()}"
        flags = [*FLAGS, f"--user-data-dir={self._profile}"]
        flags += ["--blink-settings=preferredColorScheme=0"] if dark else []
        options = {
            "binary": found[0],
            "args": flags,
            "mobileEmulation": {
                "deviceMetrics": {"width": width, "height": height, "pixelRatio": 1, "touch": False}
            },
        }
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        reply = self._call("POST", "session", {"capabilities": {"alwaysMatch": capabilities}})
        self._base += f"/session/{reply['sessionId']}"

    def _port(self) -> int:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if "started successfully on port" in line:
                return int(line.rstrip().rstrip(".").rsplit(" ", 1)[-1])
        raise RuntimeError("chromedriver did not start")

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}/{path}".rstrip("/"), data, method=method)
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)["value"]

    def open(self, url: str) -> None:
        self._call("POST", "url", {"url": url})

    def run(self, script: str) -> Any:
        return self._call("POST", "execute/sync", {"script": script, "args": []})

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        moves = [
            {"type": "pointerMove", "duration": 0, "x": round(start[0]), "y": round(start[1])},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "duration": 100, "x": round(end[0]), "y": round(end[1])},
            {"type": "pointerUp", "button": 0},
        ]
        mouse = {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}}
        self._call("POST", "actions", {"actions": [{**mouse, "actions": moves}]})

    def log(self, kind: str) -> list[dict[str, Any]]:
        return self._call("POST", "se/log", {"type": kind})

    def requests(self, page: str) -> list[str]:
        """Return the addresses that the page asked for, its own among them."""
        messages = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
            and message["params"]["documentURL"] == page
        ]

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("GET", "screenshot")))

    def wait(self, script: str, seconds: float = 10) -> Any:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run(script)
            if value:
                return value
            time.sleep(0.1)
        raise AssertionError(f"never true: {script}")

    def close(self) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._server.terminate()
            self._server.wait(10)
            shutil.rmtree(self._profile, ignore_errors=True)
