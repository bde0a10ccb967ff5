"""The client of every case."""

import argparse
import asyncio
import socket
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import (
    ConnectionTerminated,
    HandshakeCompleted,
    QuicEvent,
    StreamReset,
)
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import CipherSuite, SessionTicket

# A version that no stack supports (RFC 9000, section 15).
RESERVED_VERSION = 0x1A2A3A4A
# Number of concurrent requests.
IN_FLIGHT = 100
# Seconds to wait after the first connection for the server's session ticket.
TICKET_WAIT = 0.3


@dataclass
class Response:
    """A response as it arrives."""

    done: asyncio.Future
    status: bytes = b""
    body: bytearray = field(default_factory=bytearray)


class Downloader(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *args, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._http = H3Connection(self._quic)
        self._responses: dict[int, Response] = {}
        self.handshake: HandshakeCompleted | None = None
        self.moves = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Uses the transport for all further datagrams."""
        super().connection_made(transport)
        if self.moves:
            # Immediately, before an acknowledgment is sent from the old one.
            self.change_connection_id()

    def quic_event_received(self, event: QuicEvent) -> None:
        """Passes QUIC's events to HTTP/3; errors cancel pending requests."""
        if isinstance(event, HandshakeCompleted):
            self.handshake = event
        elif isinstance(event, ConnectionTerminated):
            for response in self._responses.values():
                self._fail(response, event.reason_phrase or hex(event.error_code))
        elif isinstance(event, StreamReset) and event.stream_id in self._responses:
            self._fail(self._responses[event.stream_id], "stream reset")
        for http_event in self._http.handle_event(event):
            self._handle(http_event)

    @staticmethod
    def _fail(response: Response, why: str) -> None:
        if not response.done.done():
            response.done.set_exception(ConnectionError(why))

    def _handle(self, event: H3Event) -> None:
        response = self._responses.get(getattr(event, "stream_id", -1))
        if response is None:
            return
        if isinstance(event, HeadersReceived):
            response.status = dict(event.headers)[b":status"]
        elif isinstance(event, DataReceived):
            response.body += event.data
        if getattr(event, "stream_ended", False) and not response.done.done():
            response.done.set_result(None)

    async def get(self, name: str, path: str, out: Path) -> None:
        """Downloads one file."""
        stream_id = self._quic.get_next_available_stream_id()
        response = Response(asyncio.get_running_loop().create_future())
        self._responses[stream_id] = response
        headers = {":method": "GET", ":scheme": "https", ":authority": name, ":path": path}
        self._http.send_headers(
            stream_id, [(k.encode(), v.encode()) for k, v in headers.items()], end_stream=True
        )
        self.transmit()
        await response.done
        if response.status != b"200":
            raise RuntimeError(f"{path}: {response.status.decode()}")
        (out / path.lstrip("/")).write_bytes(response.body)

    async def get_all(self, args: argparse.Namespace, paths: list[str]) -> None:
        """Downloads files concurrently."""
        room = asyncio.Semaphore(IN_FLIGHT)

        async def one(path: str) -> None:
            async with room:
                await self.get(args.name, path, args.out)

        await asyncio.gather(*(one(path) for path in paths))


def configure(args: argparse.Namespace) -> QuicConfiguration:
    """The settings of the case."""
    configuration = QuicConfiguration(
        alpn_protocols=H3_ALPN, server_name=args.name, verify_mode=ssl.CERT_NONE
    )
    if args.case == "chacha20":
        configuration.cipher_suites = [CipherSuite.CHACHA20_POLY1305_SHA256]
    if args.case == "versionnegotiation":
        configuration.original_version = RESERVED_VERSION
        configuration.supported_versions = [QuicProtocolVersion.VERSION_1, RESERVED_VERSION]
    if args.case == "v2":
        configuration.original_version = QuicProtocolVersion.VERSION_1
        configuration.supported_versions = [
            QuicProtocolVersion.VERSION_2,
            QuicProtocolVersion.VERSION_1,
        ]
    return configuration


async def run(args: argparse.Namespace, host: str, port: int) -> None:
    """Runs the client of the case in the arguments."""
    tickets: list[SessionTicket] = []

    def open_connection(ticket: SessionTicket | None = None, early: bool = False):
        configuration = configure(args)
        configuration.session_ticket = ticket
        return connect(
            host,
            port,
            configuration=configuration,
            create_protocol=Downloader,
            session_ticket_handler=tickets.append,
            wait_connected=not early,
        )

    first, rest = args.paths[:1], args.paths[1:]
    if args.case in ("handshakeloss", "handshakecorruption"):
        for path in args.paths:
            async with open_connection() as connection:
                await connection.get_all(args, [path])
    elif args.case in ("resumption", "zerortt"):
        async with open_connection() as connection:
            await connection.get_all(args, first)
            await asyncio.sleep(TICKET_WAIT)
        if not tickets:
            raise RuntimeError("the server gave no session ticket")
        early = args.case == "zerortt"
        async with open_connection(tickets[0], early) as connection:
            await connection.get_all(args, rest)
            if not connection.handshake.session_resumed:
                raise RuntimeError("the second connection was not resumed")
            if early and not connection.handshake.early_data_accepted:
                raise RuntimeError("0-RTT was not accepted")
    elif args.case in ("keyupdate", "connectionmigration"):
        async with open_connection() as connection:
            await connection.get_all(args, first)
            if args.case == "keyupdate":
                connection.request_key_update()
            else:
                await migrate(connection)
            await connection.get_all(args, rest)
    else:
        async with open_connection() as connection:
            await connection.get_all(args, args.paths)


async def migrate(connection: Downloader) -> None:
    """Moves the connection to another local port and another connection ID."""
    # As aioquic's own sockets: one for both families.
    local = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    local.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    local.bind(("::", 0))
    connection.moves = True
    await asyncio.get_running_loop().create_datagram_endpoint(lambda: connection, sock=local)
