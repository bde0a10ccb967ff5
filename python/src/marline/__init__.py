"""Analysis of measurements of marline's laboratory.

``python -m marline`` is the command. In a program:

- :mod:`marline.determinants`: the features that explain the throughput of transfers.
- :mod:`marline.transfers`: the features of a transfer, from its packets.
- :mod:`marline.lab`: results of the laboratory as tables, and figures for papers.
- :mod:`marline.trees`: decision trees (C4.5).
"""

from marline.errors import MarlineError

__all__ = ["MarlineError"]
