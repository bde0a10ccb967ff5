"""``python -m marline``."""

import signal
import sys
from types import FrameType


class _Signals:
    """SIGTERM is taken for Ctrl-C, so that what is unfinished is removed."""

    last = signal.SIGINT

    def terminate(self, _number: int, _frame: FrameType | None) -> None:
        self.last = signal.SIGTERM
        raise KeyboardInterrupt


if __name__ == "__main__":
    signals = _Signals()
    signal.signal(signal.SIGTERM, signals.terminate)
    try:
        # Here, because to read all libraries takes a second or two, in which one may want to stop it, too.
        from marline.cli import main

        status = main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted; nothing was written\n")
        # As shells have it.
        status = 128 + signals.last
    sys.exit(status)
