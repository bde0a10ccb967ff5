"""``python -m marline``."""

import sys

from marline.interrupts import INTERRUPTS

if __name__ == "__main__":
    INTERRUPTS.listen()
    try:
        # Here, because to read all libraries takes a second or two, in which one may want to stop it, too.
        from marline.cli import main

        status = main()
    except (KeyboardInterrupt, Exception):
        # An import that a signal interrupts may end with any error.
        if INTERRUPTS.last is None:
            raise
        sys.stderr.write("interrupted; nothing was written\n")
        # As shells have it.
        status = 128 + INTERRUPTS.last
    sys.exit(status)
