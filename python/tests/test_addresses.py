"""Prefixes of clients, in each form that an address has."""

from ipaddress import IPv4Address, IPv6Address, ip_network
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marline.cli import main
from marline.flows.addresses import outside, steps, within
from marline.flows.sessions import Options
from marline.flows.sessions.report import analyse

octets = st.integers(0, (1 << 32) - 1)
# Most of real addresses are zeros, which may be left out.
words = st.lists(st.sampled_from([0, 0, 0, 1, 0xFFFF, 0x1234]), min_size=8, max_size=8)
forms = st.one_of(
    octets.map(lambda of: str(IPv4Address(of))),
    octets.map(lambda of: f"::ffff:{IPv4Address(of)}"),
    octets.map(lambda of: f"64:ff9b::{IPv4Address(of)}"),
    words.map(lambda of: ":".join(f"{word:x}" for word in of)),
    words.map(lambda of: str(IPv6Address(":".join(f"{word:x}" for word in of))).upper()),
    words.map(lambda of: IPv6Address(":".join(f"{word:x}" for word in of)).exploded + "%eth0"),
    st.text(alphabet="0123456789abcdef:.%", max_size=20),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(forms, min_size=1, max_size=20), st.integers(0, 128), st.integers(0, 32), st.data())
def test_sql_and_python_find_the_same_addresses(found: list[str], six: int, four: int, data: st.DataObject) -> None:
    base = data.draw(words)
    networks = [
        ip_network(f"{IPv6Address(':'.join(f'{word:x}' for word in base))}/{six}", strict=False),
        ip_network((data.draw(octets), four), strict=False),
    ]
    connection = duckdb.connect()
    connection.execute("CREATE TABLE clients (place INTEGER, ip VARCHAR)")
    connection.executemany("INSERT INTO clients VALUES (?, ?)", list(enumerate(found)))
    table = connection.table("clients")
    for name, expression in steps("ip", "number"):
        table = table.project(f"*, {expression} AS {name}")
    for network in networks:
        check = outside([network])
        rows = table.order("place").project(f"ip, {within('number', network)}").fetchall()
        for ip, inside in rows:
            try:
                IPv6Address(ip.partition("%")[0]) if ":" in ip else IPv4Address(ip)
            except ValueError:
                # A text that is not an address is in no network in Python, and undefined in SQL.
                continue
            assert inside is not check(ip), (ip, network)


def flows(path: Path, clients: list[str]) -> Path:
    lines = [f"{at},{at + 1},{client},{5000 + at},192.0.2.1,443" for at, client in enumerate(clients)]
    path.write_text("\n".join(["start_s,end_s,client_ip,client_port,server_ip,server_port", *lines]) + "\n")
    return path


@pytest.mark.parametrize(
    ("prefix", "left"),
    [
        ("10.0.0.0/9", 5),
        ("10.128.0.0/9", 6),
        ("10.0.0.0/13", 5),
        ("0.0.0.0/0", 4),
        ("10.0.0.1", 5),
        ("10.0.0.0/31", 5),
        ("2001:db8::/32", 5),
        ("2001:db8::1", 6),
        ("2001:db8:0:0::/61", 6),
        ("::/0", 4),
        ("8000::/1", 6),
        ("::ffff:0:0/96", 4),
        ("::ffff:10.0.0.0/104", 4),
    ],
)
def test_any_prefix_of_clients_is_left_out(prefix: str, left: int, tmp_path: Path) -> None:
    clients = ["10.0.0.1", "10.128.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:0DB8:0001::", "fe80::1", "no address"]
    path = flows(tmp_path / "flows.csv", clients)
    report = analyse(path, Options(http="any", without=(prefix,)))
    assert report.summary.flows == left
    assert report.reasons == {"of clients that are left out": len(clients) - left}


def test_a_prefix_of_ipv6_around_all_of_ipv4_leaves_out_none_of_it() -> None:
    for prefix in ("::/0", "::/1", "::/64", "::fffe:0:0/95"):
        kept = outside([ip_network(prefix)])
        assert [kept(address) for address in ("10.0.0.1", "::ffff:10.0.0.1")] == [True, True]


def test_what_is_no_prefix_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in ("10.0.0.0/33", "home", "2001:db8::/129", "10.0.0", ""):
        with pytest.raises(SystemExit):
            main(["sessions", "flows.parquet", "--without", wrong])
        assert "must be an address or a prefix" in capsys.readouterr().err
