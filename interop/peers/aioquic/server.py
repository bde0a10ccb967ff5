"""The server: files of a directory over HTTP/3."""

import argparse
import asyncio
import sys
from pathlib import Path

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import H3Event, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated, QuicEvent
from aioquic.quic.packet import QuicProtocolVersion
from aioquic.tls import SessionTicket


class Tickets:
    """Session tickets, each valid for one resumption."""

    def __init__(self) -> None:
        self._tickets: dict[bytes, SessionTicket] = {}

    def add(self, ticket: SessionTicket) -> None:
        """Stores a ticket that was issued."""
        self._tickets[ticket.ticket] = ticket

    def pop(self, label: bytes) -> SessionTicket | None:
        """Returns a ticket, once."""
        return self._tickets.pop(label, None)


class FileServer(QuicConnectionProtocol):
    """One connection."""

    def __init__(self, *args, www: Path, **kwargs) -> None:
        super().__init__(*args, **kwargs)
        self._www = www.resolve()
        self._http: H3Connection | None = None

    def quic_event_received(self, event: QuicEvent) -> None:
        """Passes QUIC's events to HTTP/3."""
        if isinstance(event, ProtocolNegotiated):
            self._http = H3Connection(self._quic)
        if self._http is not None:
            for http_event in self._http.handle_event(event):
                self._handle(http_event)

    def _handle(self, event: H3Event) -> None:
        if not isinstance(event, HeadersReceived):
            return
        path = dict(event.headers).get(b":path", b"").decode()
        file = (self._www / path.lstrip("/")).resolve()
        found = file.is_relative_to(self._www) and file.is_file()
        content = file.read_bytes() if found else b""
        self._http.send_headers(
            event.stream_id,
            [
                (b":status", b"200" if found else b"404"),
                (b"content-length", str(len(content)).encode()),
            ],
            end_stream=not content,
        )
        if content:
            self._http.send_data(event.stream_id, content, end_stream=True)
        self.transmit()


async def run(args: argparse.Namespace, host: str, port: int) -> None:
    """Serves until stopped."""
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(args.cert, args.key)
    if args.case == "v2":
        configuration.supported_versions = [
            QuicProtocolVersion.VERSION_2,
            QuicProtocolVersion.VERSION_1,
        ]
    tickets = Tickets()
    await serve(
        host,
        port,
        configuration=configuration,
        create_protocol=lambda *a, **k: FileServer(*a, www=args.www, **k),
        session_ticket_fetcher=tickets.pop,
        session_ticket_handler=tickets.add,
        retry=args.case == "retry",
    )
    print(f"listening on {args.listen}", file=sys.stderr, flush=True)
    await asyncio.Event().wait()
