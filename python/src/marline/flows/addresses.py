"""Addresses in prefixes: in SQL of the embedded engine, and in Python for workers of the other."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network

_DIGITS = 32

_MAPPED = IPv6Network("::ffff:0:0/96")
"""The prefix of IPv4 addresses in IPv6. A larger network of IPv6 does not include them."""


def steps(column: str, number: str) -> list[tuple[str, str]]:
    """Columns to add one after another, by their names, of which the last is the ``number`` of an address.

    It has the 32 hexadecimal digits of an address of IPv6, however its text is written; one of IPv4 is as in one of
    IPv6 (``::ffff:192.0.2.1``), which is of the same host.
    """
    names = [f"{number}_{at}" for at in range(4)]
    address, dotted, whole, before = names
    octets = [f"lpad(lower(hex(TRY_CAST(split_part({dotted}, '.', {at}) AS BIGINT))), 2, '0')" for at in range(1, 5)]
    groups = f"{octets[0]}, {octets[1]}, ':', {octets[2]}, {octets[3]}"
    after = f"substr({whole}, length({before}) + 3)"
    # The zeros between two colons are of as many groups as there are fewer than eight.
    colons = f"length(replace({whole}, '::', ':')) - length(replace({whole}, ':', ''))"
    missing = f"9 - ({colons}) - CASE WHEN {before} = '' THEN 0 ELSE 1 END - CASE WHEN {after} = '' THEN 0 ELSE 1 END"
    zeros = f"repeat('0:', CAST({missing} AS INTEGER))"
    start = f"CASE WHEN {before} = '' THEN '' ELSE concat({before}, ':') END"
    filled = f"CASE WHEN {whole} LIKE '%::%' THEN concat({start}, {zeros}, {after}) ELSE {whole} END"
    parts = (f"lpad(split_part({number}_filled, ':', {at}), 4, '0')" for at in range(1, 9))
    return [
        (address, f"split_part(lower(trim({column})), '%', 1)"),
        (dotted, f"split_part({address}, ':', -1)"),
        (
            whole,
            f"CASE WHEN {address} NOT LIKE '%.%' THEN {address} WHEN {address} LIKE '%:%' "
            f"THEN concat(left({address}, length({address}) - length({dotted})), {groups}) "
            f"ELSE concat('::ffff:', {groups}) END",
        ),
        (before, f"split_part({whole}, '::', 1)"),
        (f"{number}_filled", filled),
        (number, f"concat({', '.join(parts)})"),
    ]


def within(number: str, network: Network) -> str:
    """Whether such a number is in a network."""
    network = _of_ipv6(network)
    low, high = (f"{int(end):0{_DIGITS}x}" for end in (network.network_address, network.broadcast_address))
    inside = f"{number} BETWEEN '{low}' AND '{high}'"
    if not _of_ipv4(network):
        inside += f" AND {number} NOT LIKE '{int(_MAPPED.network_address) >> _DIGITS:024x}%'"
    return f"coalesce({inside}, false)"


def outside(networks: Sequence[Network]) -> Callable[[str | None], bool]:
    """Whether an address is in none of the networks, as in :func:`within`."""
    whole = [_of_ipv6(network) for network in networks]

    @lru_cache(1 << 16)
    def check(text: str | None) -> bool:
        try:
            address = ip_address((text or "").strip().partition("%")[0])
        except ValueError:
            return True
        number = _mapped(address) if isinstance(address, IPv4Address) else address
        of_ipv4 = number in _MAPPED
        return not any(number in network and _of_ipv4(network) == of_ipv4 for network in whole)

    return check


def _mapped(address: IPv4Address) -> IPv6Address:
    return IPv6Address(int(address) | 0xFFFF << 32)


def _of_ipv4(network: IPv6Network) -> bool:
    return network.subnet_of(_MAPPED)


def _of_ipv6(network: Network) -> IPv6Network:
    if isinstance(network, IPv6Network):
        return network
    return IPv6Network((_mapped(network.network_address), 96 + network.prefixlen))
