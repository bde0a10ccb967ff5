"""Conversion of the records of several programs to flows."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from marline.flows.columns import COLUMNS, NEEDED


@dataclass(frozen=True, slots=True)
class Format:
    """The conversion of the records of a program to flows."""

    name: str
    text: Mapping[str, str]
    """An expression over its columns, which are texts unless the file is Parquet, for each of ours that it has."""
    needs: tuple[str, ...]
    """Its required columns."""


def _columns(pairs: Mapping[str, str]) -> dict[str, str]:
    return {ours: f'"{theirs}"' for ours, theirs in pairs.items()}


def _version(alpn: str) -> str:
    return (
        f"CASE WHEN {alpn} = 'h2' THEN 'h2' WHEN {alpn} LIKE 'h3%' THEN 'h3' WHEN {alpn} LIKE 'http/1%' THEN 'h1' "
        f"WHEN {alpn} IS NOT NULL AND {alpn} NOT IN ('', '-', '(empty)') THEN 'other' END"
    )


def _milliseconds(column: str) -> str:
    return f'TRY_CAST("{column}" AS DOUBLE) / 1000'


def _tstat_end(ours: str, theirs: str) -> dict[str, str]:
    return {
        f"{ours}_ip": f'"{theirs}_ip"',
        f"{ours}_port": f'"{theirs}_port"',
        f"{ours}_packets": f'"{theirs}_pkts_all"',
        f"{ours}_bytes": f'"{theirs}_bytes_all"',
        f"{ours}_syn": f'TRY_CAST("{theirs}_syn_cnt" AS BIGINT) > 0',
        f"{ours}_ack": f'TRY_CAST("{theirs}_ack_cnt" AS BIGINT) > 0',
        f"{ours}_fin": f'TRY_CAST("{theirs}_fin_cnt" AS BIGINT) > 0',
    }


MARLINE = Format("marline", _columns({name: name for name in COLUMNS}), NEEDED)
"""A table with our columns, CSV or Parquet."""

# A bitmap of the protocol in the ServerHello: NPN 2 HTTP, 4 SPDY, 8 H2; ALPN 32, 64, 128. The study counts SPDY
# and HTTP/2 together.
_TSTAT_CHOSEN = 'TRY_CAST("s_npnalpn" AS INTEGER)'

TSTAT = Format(
    "tstat",
    {
        **_tstat_end("client", "c"),
        **_tstat_end("server", "s"),
        "start_s": _milliseconds("first"),
        "end_s": _milliseconds("last"),
        "transport": "'tcp'",
        "sni": "nullif(\"c_tls_SNI\", '-')",
        "http_version": f"CASE WHEN {_TSTAT_CHOSEN} & 204 > 0 THEN 'h2' WHEN {_TSTAT_CHOSEN} & 34 > 0 THEN 'h1' END",
        "label_source": f"CASE WHEN {_TSTAT_CHOSEN} & 238 > 0 THEN 'handshake' END",
    },
    ("c_ip", "c_port", "s_ip", "s_port", "first", "last", "c_bytes_all", "s_bytes_all"),
)
"""Tstat's ``log_tcp_complete``, with the sets of columns that it was configured for."""


def _seen(direction: str, flag: str) -> str:
    """Whether Zeek's history has a letter, in capitals for the originator."""
    return f"contains(\"history\", '{flag.upper() if direction == 'orig' else flag}')"


def _zeek_end(ours: str, theirs: str) -> dict[str, str]:
    opening = "s" if theirs == "orig" else "h"
    return {
        f"{ours}_ip": f'"id.{theirs}_h"',
        f"{ours}_port": f'"id.{theirs}_p"',
        f"{ours}_packets": f'"{theirs}_pkts"',
        f"{ours}_bytes": f'"{theirs}_ip_bytes"',
        f"{ours}_syn": _seen(theirs, opening),
        f"{ours}_ack": _seen(theirs, "a"),
        f"{ours}_fin": _seen(theirs, "f"),
    }


_ZEEK_NUMBER = 'TRY_CAST("ts" AS DOUBLE)'

_ZEEK_START = (
    f"coalesce(CASE WHEN {_ZEEK_NUMBER} < 1e11 THEN {_ZEEK_NUMBER} ELSE {_ZEEK_NUMBER} / 1000 END, "
    'epoch(TRY_CAST("ts" AS TIMESTAMP)))'
)
"""JSON may have times as texts (`JSON::TS_ISO8601`), or in milliseconds (`JSON::TS_MILLIS`): seconds of this size are
after the year 5000."""

_ZEEK_VERSION = _version('"alpn"')

ZEEK = Format(
    "zeek",
    {
        **_zeek_end("client", "orig"),
        **_zeek_end("server", "resp"),
        "start_s": _ZEEK_START,
        "end_s": f"{_ZEEK_START} + coalesce(TRY_CAST(nullif(\"duration\", '-') AS DOUBLE), 0)",
        "transport": '"proto"',
        "sni": "nullif(nullif(\"sni\", '-'), '')",
        "http_version": _ZEEK_VERSION,
        "label_source": f"CASE WHEN {_ZEEK_VERSION} IS NOT NULL THEN 'handshake' END",
    },
    ("ts", "uid", "id.orig_h", "id.orig_p", "id.resp_h", "id.resp_p"),
)
"""Zeek's ``conn.log``."""

ZEEK_CONN = sorted(
    {name for text in ZEEK.text.values() for name in re.findall(r'"([^"]+)"', text)} - {"sni", "alpn"} | {"uid"}
)
"""Its columns that are read."""


ZEEK_OWN = ("conn_state", "duration", "missed_bytes", "orig_bytes", "orig_pkts")
"""Columns that no other log has: ``dns.log`` and others have the ends of connections, too."""


def is_zeek(found: Mapping[str, object]) -> bool:
    """Whether an object of JSON is of a log of connections, with its ends in any of the forms of :func:`zeek_keys`."""
    ends = found.get("id")
    return "id.orig_h" in found or "id_orig_h" in found or (isinstance(ends, dict) and "orig_h" in ends)


def zeek_keys(name: str) -> tuple[str, ...]:
    """The keys of JSON that have a column: shippers of logs write ``id.orig_h`` also as ``id_orig_h``, or in ``id``."""
    record, dot, _ = name.partition(".")
    return (name, name.replace(".", "_"), record) if dot else (name,)


def zeek_column(name: str) -> str:
    """A column of the texts of its :func:`zeek_keys`, in SQL."""
    if len(zeek_keys(name)) == 1:
        return f'"{name}"'
    plain, renamed, record = zeek_keys(name)
    inner = f"json_extract_string(TRY_CAST(\"{record}\" AS JSON), '$.{name.partition('.')[2]}')"
    return f'coalesce("{plain}", "{renamed}", {inner}) AS "{name}"'


def _flag(letter: str) -> str:
    return f"contains(\"flg\", '{letter}')"


_BOTH = 'TRY_CAST("opkt" AS BIGINT) > 0'

_NFDUMP_NAMES: Final = {
    "ts": ("ts", "firstSeen", "first", "t_first"),
    "te": ("te", "lastSeen", "last", "t_last"),
    "td": ("td", "duration"),
    "pr": ("pr", "proto"),
    "sa": ("sa", "srcAddr", "src4_addr", "src6_addr"),
    "sp": ("sp", "srcPort", "src_port"),
    "da": ("da", "dstAddr", "dst4_addr", "dst6_addr"),
    "dp": ("dp", "dstPort", "dst_port"),
    "flg": ("flg", "flags", "tcp_flags"),
    "ipkt": ("ipkt", "packets", "inPackets", "in_packets"),
    "ibyt": ("ibyt", "bytes", "inBytes", "in_bytes"),
    "opkt": ("opkt", "outPackets", "out_packets"),
    "obyt": ("obyt", "outBytes", "out_bytes"),
}
"""Its columns, as CSV had them until 1.7.4 and has them since, and as JSON had them until 1.6 and has them."""

NFDUMP_KEYS: Final = sorted({name for names in _NFDUMP_NAMES.values() for name in names})

NFDUMP_NEEDS: Final = {
    "firstSeen": set(_NFDUMP_NAMES["ts"]),
    "duration": {*_NFDUMP_NAMES["td"], *_NFDUMP_NAMES["te"]},
    "proto": set(_NFDUMP_NAMES["pr"]),
    "srcAddr": set(_NFDUMP_NAMES["sa"]),
    "srcPort": set(_NFDUMP_NAMES["sp"]),
    "dstAddr": set(_NFDUMP_NAMES["da"]),
    "dstPort": set(_NFDUMP_NAMES["dp"]),
    "packets": set(_NFDUMP_NAMES["ipkt"]),
    "bytes": set(_NFDUMP_NAMES["ibyt"]),
}
"""Without one of each, a record is not a flow."""


def is_nfdump(names: Collection[str]) -> bool:
    """Whether these are names of nfdump's columns, in any order."""
    has = [any(name in names for name in _NFDUMP_NAMES[ours]) for ours in ("ts", "sa", "da")]
    return all(has) or (has[0] and "in_packets" in names)


def nfdump_columns(names: Collection[str]) -> str:
    """Its columns by the shortest of their names, in SQL; missing ones are NULL."""
    expressions = []
    for ours, known in _NFDUMP_NAMES.items():
        there = [f'"{name}"' for name in known if name in names]
        expressions.append(f"coalesce({', '.join([*there, 'NULL'])}) AS {ours}")
    return ", ".join(expressions)


def _time(column: str) -> str:
    """A date, seconds or milliseconds since 1970; counts of a summary are not times."""
    number = f'TRY_CAST("{column}" AS DOUBLE)'
    numbers = f"CASE WHEN {number} > 1e11 THEN {number} / 1000 WHEN {number} > 1e8 THEN {number} END"
    return f'coalesce(epoch(TRY_CAST("{column}" AS TIMESTAMP)), {numbers})'


_DURATION: Final = 'coalesce(TRY_CAST(trim("td") AS DOUBLE), epoch(TRY_CAST(trim("td") AS INTERVAL)))'

NFDUMP_RECORD: Final = f"{_time('ts')} IS NOT NULL OR contains(sa, '.') OR contains(sa, ':')"
"""Whether a line has a time or an address."""

NFDUMP = Format(
    "nfdump",
    {
        "start_s": _time("ts"),
        "end_s": f"coalesce({_time('ts')} + {_DURATION}, {_time('te')})",
        "client_ip": 'trim("sa")',
        "client_port": '"sp"',
        "server_ip": 'trim("da")',
        "server_port": '"dp"',
        "transport": "CASE trim(\"pr\") WHEN '6' THEN 'tcp' WHEN '17' THEN 'udp' ELSE lower(trim(\"pr\")) END",
        "client_packets": '"ipkt"',
        "client_bytes": '"ibyt"',
        "server_packets": '"opkt"',
        "server_bytes": '"obyt"',
        "client_syn": _flag("S"),
        "client_ack": _flag("A"),
        "client_fin": _flag("F"),
        # A joined record has the flags of both directions in one field.
        "server_syn": f"CASE WHEN {_BOTH} THEN {_flag('S')} END",
        "server_ack": f"CASE WHEN {_BOTH} THEN {_flag('A')} END",
        "server_fin": f"CASE WHEN {_BOTH} THEN {_flag('F')} END",
    },
    tuple(_NFDUMP_NAMES),
)
"""``nfdump -o csv``, ``json`` and their kin, of single directions or joined by ``-B``, by :func:`nfdump_columns`.

Until 1.7.4, starts are of whole seconds.
"""
