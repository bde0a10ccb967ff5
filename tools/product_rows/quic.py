"""A client of HTTP/3 by aioquic, for what no command does. It runs in the Python of `make -C interop aioquic`.

quic.py CA websocket NAME PORT PATH    opens a WebSocket (RFC 9220), and ends with 0 if a frame comes back
quic.py CA replay NAME PORT PATH       requests PATH in 0-RTT, and sends the datagrams of its first flight again
"""

import asyncio
import socket
import ssl
import sys

from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection, Setting
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration

FRAME = bytes([0x81, 0x85, 0, 0, 0, 0]) + b"hello"


class Client(QuicConnectionProtocol):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.http = H3Connection(self._quic)
        self.events = asyncio.Queue()

    def quic_event_received(self, event):
        for each in self.http.handle_event(event):
            self.events.put_nowait(each)

    def request(self, *fields, end):
        stream = self._quic.get_next_available_stream_id()
        self.http.send_headers(stream, [(name.encode(), value.encode()) for name, value in fields], end_stream=end)
        self.transmit()
        return stream

    async def wait(self, kind):
        while not isinstance(event := await asyncio.wait_for(self.events.get(), 5), kind):
            pass
        return event


def configuration(ca, name):
    settings = QuicConfiguration(alpn_protocols=H3_ALPN, is_client=True, server_name=name)
    settings.load_verify_locations(ca)
    return settings


async def websocket(ca, name, port, path):
    async with connect("127.0.0.1", port, configuration=configuration(ca, name), create_protocol=Client) as client:
        for _ in range(100):
            if client.http.received_settings is not None:
                break
            await asyncio.sleep(0.02)
        if (client.http.received_settings or {}).get(Setting.ENABLE_CONNECT_PROTOCOL) != 1:
            sys.exit("the server does not have the setting of RFC 9220")
        head = [
            (":method", "CONNECT"),
            (":protocol", "websocket"),
            (":scheme", "https"),
            (":authority", name),
            (":path", path),
        ]
        stream = client.request(*head, ("sec-websocket-version", "13"), end=False)
        status = dict((await client.wait(HeadersReceived)).headers)[b":status"]
        if status != b"200":
            sys.exit(f"the status is {status.decode()}")
        client.http.send_data(stream, FRAME, end_stream=False)
        client.transmit()
        if (await client.wait(DataReceived)).data != FRAME:
            sys.exit("another frame comes back")


class Recorder:
    """The transport of a client, which keeps what it sends."""

    def __init__(self, transport):
        self.transport, self.datagrams = transport, []

    def sendto(self, content, address=None):
        self.datagrams.append(content)
        self.transport.sendto(content, address)

    def __getattr__(self, name):
        return getattr(self.transport, name)


async def replay(ca, name, port, path):
    tickets = []
    first = configuration(ca, name)
    options = {"create_protocol": Client, "session_ticket_handler": tickets.append}
    async with connect("127.0.0.1", port, configuration=first, **options) as client:
        get(client, name, path + "?first")
        await client.wait(HeadersReceived)
        for _ in range(100):
            if tickets:
                break
            await asyncio.sleep(0.02)
    if not tickets:
        sys.exit("the server gives no session")
    second = configuration(ca, name)
    second.session_ticket = tickets[-1]
    async with connect("127.0.0.1", port, configuration=second, wait_connected=False, create_protocol=Client) as client:
        client._transport = recorder = Recorder(client._transport)
        get(client, name, path + "?early")
        flight = list(recorder.datagrams)
        await client.wait(HeadersReceived)
        if not client._quic.tls.early_data_accepted:
            sys.exit("the server does not take 0-RTT")
    # Until a server has forgotten the connection, it takes the datagrams for late ones of it.
    await asyncio.sleep(6)
    replayed(flight, port)


def get(client, name, path):
    client.request((":method", "GET"), (":scheme", "https"), (":authority", name), (":path", path), end=True)


def replayed(flight, port):
    """Sends the first flight from another port, as somebody would who has recorded it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.settimeout(1)
        for datagram in flight:
            other.sendto(datagram, ("127.0.0.1", port))
        try:
            other.recv(2000)
        except TimeoutError:
            return


if __name__ == "__main__":
    _, authority, what, host, number, target = sys.argv
    try:
        asyncio.run({"websocket": websocket, "replay": replay}[what](authority, host, int(number), target))
    except (TimeoutError, ConnectionError, ssl.SSLError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
