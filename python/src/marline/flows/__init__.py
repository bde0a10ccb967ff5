"""Flows in traffic: who opens parallel connections, and which version of HTTP they carry.

Records come from tables with our columns, Tstat, Zeek and nfdump; :mod:`marline.flows.source` reads them into one set
of columns.
"""
