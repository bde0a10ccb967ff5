"""The columns of a flow, whatever wrote its record."""

from typing import Final

COLUMNS: Final = {
    "start_s": "DOUBLE",
    "end_s": "DOUBLE",
    "client_ip": "VARCHAR",
    "client_port": "INTEGER",
    "server_ip": "VARCHAR",
    "server_port": "INTEGER",
    "transport": "VARCHAR",
    "client_packets": "BIGINT",
    "server_packets": "BIGINT",
    "client_bytes": "BIGINT",
    "server_bytes": "BIGINT",
    "client_syn": "BOOLEAN",
    "client_ack": "BOOLEAN",
    "client_fin": "BOOLEAN",
    "server_syn": "BOOLEAN",
    "server_ack": "BOOLEAN",
    "server_fin": "BOOLEAN",
    "sni": "VARCHAR",
    "http_version": "VARCHAR",
    "label_source": "VARCHAR",
}
"""Names and types of what the analyses use of records; times in seconds since 1970."""

NEEDED: Final = ("start_s", "end_s", "client_ip", "client_port", "server_ip", "server_port")
"""Columns without which a record is no flow."""

VERSIONS: Final = ("h1", "h2", "h3", "other")
"""Values of ``http_version``; nothing where it is not known."""

HTTPS_PORT: Final = 443
"""Of the servers whose flows are characterised and classified (thesis, section 3.1)."""
