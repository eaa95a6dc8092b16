"""The process around a command: the streams it was given, and the signals sent to it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


_received: list[KeyboardInterrupt] = []


class Terminated(KeyboardInterrupt):
    """A signal to end, treated as Ctrl-C is: whatever is half done is cleaned up.

    Attributes
    ----------
    exit_code : 128 and the number of the signal, as a shell says it.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let a signal to end raise `Terminated` in the main thread, once, within the block.

    A signal that was ignored (``nohup``) or is handled by someone else stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours = [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_DFL]
    main = os.getpid()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)

    def end(number: int, frame: FrameType | None) -> None:
        for other in ours:  # a second one must not stop the cleaning up
            signal.signal(other, signal.SIG_IGN)
        if os.getpid() != main:  # a forked worker has nothing to clean up
            os._exit(128 + number)
        _received.append(Terminated(number))
        raise _received[-1]

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        _received.clear()
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
        if before is signal.default_int_handler:
            signal.signal(signal.SIGINT, before)


def _stop(number: int, frame: FrameType | None) -> None:
    """Ctrl-C as Python treats it, and remembered."""
    _received.append(KeyboardInterrupt())
    raise _received[-1]


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the code to end with: 128 and the number of the signal."""
    return interrupt.exit_code if isinstance(interrupt, Terminated) else 128 + signal.SIGINT


def received() -> KeyboardInterrupt | None:
    """Return the first interrupt that came while a command ran, if one did.

    It may have been swallowed: a library that is interrupted while it loads fails in its own way.
    """
    return _received[0] if _received else None


def prepare_streams() -> str | None:
    """Make the standard streams take any text; return a sentence where there is no output.

    A terminal that is not UTF-8 gets a code for what it cannot show, instead of nothing at all.
    """
    if sys.stdout is None or sys.stdout.closed:
        return "there is no standard output to write to: it is closed"
    for stream in (sys.stdout, sys.stderr):
        encoding = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "")
        if hasattr(stream, "reconfigure") and encoding != "utf8":
            stream.reconfigure(errors="backslashreplace")
    return None
