"""A headless Chromium driven through its debugging pipe, with the standard library alone."""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--remote-debugging-pipe",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
# The browser expects its pipe at descriptors 3 and 4. They are moved out of the way first,
# since either may be the number the other has to take.
MOVE = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
DEADLINE = 60


def executable():
    """Return the path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One browser with an empty profile; use as a context manager."""

    def __enter__(self):
        self.profile = tempfile.mkdtemp()
        here_read, there_write = os.pipe()
        there_read, here_write = os.pipe()
        command = [executable(), *FLAGS, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", MOVE, str(there_read), str(there_write), *command],
            pass_fds=(there_read, there_write),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there_read)
        os.close(there_write)
        self.read, self.write = here_read, here_write
        self.buffer, self.last, self.events = b"", 0, []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (OSError, RuntimeError, subprocess.TimeoutExpired):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.read)
        os.close(self.write)
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, session=None, **params):
        """Send one command and return its result; events that arrive meanwhile are kept."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self.events.append(answer)

    def receive(self):
        deadline = time.monotonic() + DEADLINE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self.read, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("the browser went silent")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, *, width=1100, height=900, dark=False, scripts=True):
        """Open a file in a new tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        tab = Tab(self, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        tab.call("Emulation.setEmulatedMedia", features=scheme)
        tab.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        tab.go(path.resolve().as_uri())
        return tab


class Tab:
    """One page in the browser."""

    def __init__(self, browser, target):
        self.browser, self.target = browser, target
        attached = browser.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]

    def call(self, method, **params):
        return self.browser.call(method, self.session, **params)

    def resize(self, width, height):
        size = {"width": width, "height": height}
        self.call("Emulation.setDeviceMetricsOverride", deviceScaleFactor=1, mobile=False, **size)

    def go(self, address):
        """Load an address in this tab and return once it is loaded."""
        loaded = len(self.events("Page.loadEventFired"))
        self.call("Page.navigate", url=address)
        while len(self.events("Page.loadEventFired")) == loaded:
            self.browser.events.append(self.browser.receive())

    def events(self, *methods):
        return [
            e["params"]
            for e in self.browser.events
            if e.get("sessionId") == self.session and e["method"] in methods
        ]

    def run(self, expression):
        """Evaluate JavaScript and return its value."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def key(self, key, code, text=None):
        """Press and release one key."""
        where = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", **where, **({"text": text} if text else {})
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **where)

    def complaints(self):
        """Everything the page wrote to the console or threw, as text."""
        said = self.events("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(entry) for entry in said]

    def requests(self):
        """Addresses the page asked for, beside itself and what it holds inline."""
        asked = [e["request"]["url"] for e in self.events("Network.requestWillBeSent")]
        return [url for url in asked[1:] if not url.startswith("data:")]

    def screenshot(self, path, whole=True):
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def pdf(self, path):
        printed = self.call("Page.printToPDF", printBackground=True)
        path.write_bytes(base64.b64decode(printed["data"]))

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
