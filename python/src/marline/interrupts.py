"""Signals that end a command, which libraries may turn into errors of their own."""

import signal
from types import FrameType


class Interrupts:
    """SIGINT and SIGTERM, which raise :class:`KeyboardInterrupt`, so that what is unfinished is removed."""

    def __init__(self) -> None:
        self.last: int | None = None
        """The last signal received."""

    def listen(self) -> None:
        """Handle the signals of this process."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._interrupt)

    def check(self) -> None:
        """Raise :class:`KeyboardInterrupt` if a signal arrived: a library may have swallowed the one that it raised."""
        if self.last is not None:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, _frame: FrameType | None) -> None:
        self.last = number
        raise KeyboardInterrupt


INTERRUPTS = Interrupts()
"""Those of the command."""
