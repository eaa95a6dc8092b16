"""The process around a command: the streams it was given, and the signals sent to it."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_received: list[KeyboardInterrupt] = []


class Terminated(KeyboardInterrupt):
    """A signal to end, or Ctrl-C: whatever is half done is cleaned up.

    Attributes
    ----------
    exit_code : 128 and the number of the signal, as a shell says it.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let Ctrl-C and a signal to end raise `Terminated` in the main thread, within the block.

    A signal that was ignored (``nohup``) or is handled by someone else stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {n: signal.getsignal(n) for n in (signal.SIGINT, *ENDING)}
    ours = {number: old for number, old in before.items() if old in usual}
    main = os.getpid()

    def end(number: int, frame: FrameType | None) -> None:
        if number in ENDING:
            for other in set(ours) & set(ENDING):  # a second one must not stop the cleaning up
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
        for number, old in ours.items():
            signal.signal(number, old)


def received() -> KeyboardInterrupt | None:
    """Return the first interrupt that came while a command ran, though it may be swallowed."""
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
