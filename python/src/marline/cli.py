"""The command line: one verb for each analysis."""

import os
import sys
from collections.abc import Sequence

from marline.arguments import command_line
from marline.determinants import command as determinants
from marline.errors import MarlineError
from marline.flows.characterise import command as characterise
from marline.flows.classify import command as classify
from marline.flows.sessions import command as sessions
from marline.interrupts import INTERRUPTS
from marline.lab import command as figures
from marline.text import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its status is 0, 1 for an error, or 2 for a wrong command line.

    Raises :class:`KeyboardInterrupt` if a signal arrived, which libraries may turn into errors of their own.
    """
    parser = command_line("python -m marline", "Analysis of measurements of marline's laboratory, and of flows.")
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    determinants.add(verbs)
    characterise.add(verbs)
    sessions.add(verbs)
    classify.add(verbs)
    figures.add(verbs)
    parsed = parser.parse_args(arguments)
    try:
        parsed.run(parsed)
        sys.stdout.flush()
    except Exception as error:
        # A library that was interrupted by the signal may have raised any kind of error.
        INTERRUPTS.check()
        return _tell(error)
    return 0


def _tell(error: Exception) -> int:
    """Print the error, and return the status for it; raises ``error`` if it is a defect."""
    if isinstance(error, MarlineError):
        sys.stderr.write(f"error: {printable(str(error))}\n")
    elif isinstance(error, OSError):
        # Standard output cannot be written to any more, not even at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            where = f"{error.filename}: " if error.filename else ""
            sys.stderr.write(f"error: {where}{error.strerror or error}\n")
    else:
        raise error
    return 1
