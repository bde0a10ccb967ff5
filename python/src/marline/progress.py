"""Progress of long work, on standard error."""

import sys
import time
from typing import TextIO


class Progress:
    """Shows how many of ``total`` steps are done.

    On a terminal one line is rewritten; elsewhere a line is written every ten seconds, so that short work writes none.
    """

    def __init__(self, total: int, stream: TextIO | None = None, every_s: float = 10.0) -> None:
        self._total = total
        self._done = 0
        self._stream = sys.stderr if stream is None else stream
        self._terminal = self._stream.isatty()
        self._every_s = every_s
        self._last = time.monotonic()

    def step(self, what: str) -> None:
        """One more step is done; ``what`` names the current step."""
        self._done += 1
        text = f"{100 * self._done // self._total:3d} %  {what}"
        if self._terminal:
            self._stream.write(f"\r\033[K{text}")
            self._stream.flush()
        elif time.monotonic() - self._last >= self._every_s:
            self._last = time.monotonic()
            self._stream.write(f"{text}\n")

    def end(self) -> None:
        """Remove the line."""
        if self._terminal and self._done:
            self._stream.write("\r\033[K")
            self._stream.flush()
