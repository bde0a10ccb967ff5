"""Analysis of what marline's laboratory measures.

``python -m marline`` is the command. In a program:

- :mod:`marline.determinants`: what explains the throughput of transfers.
- :mod:`marline.transfers`: the features of a transfer, from its packets.
- :mod:`marline.trees`: decision trees (C4.5).
"""

from marline.errors import MarlineError

__all__ = ["MarlineError"]
