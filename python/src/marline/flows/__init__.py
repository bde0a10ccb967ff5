"""Flows in traffic: parallel connections of clients, and the versions of HTTP that flows carry.

Records come from tables with our columns, Tstat, Zeek and nfdump; :mod:`marline.flows.source` reads them into one set
of columns.
"""
