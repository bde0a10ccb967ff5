"""``python -m marline``."""

import sys

from marline.cli import main

if __name__ == "__main__":
    sys.exit(main())
