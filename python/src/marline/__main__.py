"""``python -m marline``."""

import os
import sys
from io import TextIOWrapper
from pathlib import Path

from marline.interrupts import INTERRUPTS

if __name__ == "__main__":
    if sys.stdout is None:
        # Before a file that is opened takes its place.
        sys.exit("error: standard output is closed, and the result is printed there")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    # Names of files and servers may have characters that the terminal's encoding lacks.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    INTERRUPTS.listen()
    try:
        # Imported here, because loading all libraries takes a second or two, which can be interrupted, too.
        from marline.cli import main

        status = main()
    except (KeyboardInterrupt, Exception) as error:
        # An import that a signal interrupts may end with any error.
        if INTERRUPTS.last is not None:
            sys.stderr.write("interrupted; nothing was written\n")
            # As in shells.
            status = 128 + INTERRUPTS.last
        elif isinstance(error, ImportError):
            sys.exit(f"error: {error}: marline is not installed whole; install it again")
        else:
            raise
    sys.exit(status)
