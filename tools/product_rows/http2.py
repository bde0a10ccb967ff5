"""As much of HTTP/2 (RFC 9113) as an application of gRPC and a client of WebSocket need, without encryption of its own."""

import contextlib
import socket
import socketserver
import struct
import threading

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4
ENABLE_CONNECT_PROTOCOL = 8


def literal(name, value):
    """A field without indexing and without Huffman coding (RFC 7541, section 6.2.2)."""
    return b"\x00" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def block(*fields):
    return b"".join(literal(name, value) for name, value in fields)


class Connection:
    """Frames over a socket."""

    def __init__(self, stream):
        self.stream = stream
        self.file = stream.makefile("rb")

    def send(self, kind, flags, number, content=b""):
        self.stream.sendall(
            struct.pack("!I", len(content))[1:] + bytes([kind, flags]) + struct.pack("!I", number) + content
        )

    def receive(self):
        """The next frame as kind, flags, stream and content; None at the end of the connection."""
        head = self.file.read(9)
        if len(head) < 9:
            return None
        length = int.from_bytes(head[:3], "big")
        return head[3], head[4], int.from_bytes(head[5:9], "big") & 0x7FFFFFFF, self.file.read(length)

    def answer(self, kind, flags, content):
        """Acknowledges what has to be, as settings and pings; whether it was such a frame."""
        if kind in (SETTINGS, PING) and not flags & ACK:
            self.send(kind, ACK, 0, content if kind == PING else b"")
            return True
        return kind in (SETTINGS, PING, WINDOW_UPDATE)

    def grant(self, number, content):
        """Returns to the peer the window that content has taken."""
        if content:
            for which in (0, number):
                self.send(WINDOW_UPDATE, 0, which, struct.pack("!I", len(content)))


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        with contextlib.suppress(OSError):
            self.serve(Connection(self.request))

    def serve(self, connection):
        if connection.file.read(len(PREFACE)) != PREFACE:
            self.server.refused += 1
            return
        connection.send(SETTINGS, 0, 0)
        while frame := connection.receive():
            kind, flags, number, content = frame
            if connection.answer(kind, flags, content):
                continue
            if kind == HEADERS:
                self.server.requests += 1
                connection.send(HEADERS, END_HEADERS, number, b"\x88" + literal("content-type", "application/grpc"))
            elif kind == DATA and content:
                connection.grant(number, content)
                connection.send(DATA, 0, number, content)
            if kind in (HEADERS, DATA) and flags & END_STREAM:
                trailers = block(("grpc-status", "0"), ("grpc-message", "done"))
                connection.send(HEADERS, END_HEADERS | END_STREAM, number, trailers)


class App(socketserver.ThreadingTCPServer):
    """An application over HTTP/2: it returns content as it arrives, and ends with trailers as gRPC does."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port, context=None):
        super().__init__(("127.0.0.1", port), Handler)
        self.context = context
        self.requests = self.refused = 0
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def get_request(self):
        stream, address = super().get_request()
        if self.context:
            stream.settimeout(5)
            try:
                stream = self.context.wrap_socket(stream, server_side=True)
            except OSError as error:
                stream.close()
                raise OSError(str(error)) from error
            stream.settimeout(None)
        return stream, address

    def close(self):
        self.shutdown()
        self.server_close()


class Client:
    """A connection to a server, with one request on it."""

    def __init__(self, address, name, context):
        context.set_alpn_protocols(["h2"])
        self.stream = context.wrap_socket(socket.create_connection(address, 5), server_hostname=name)
        assert self.stream.selected_alpn_protocol() == "h2", "the server does not choose HTTP/2"
        self.connection = Connection(self.stream)
        self.name = name
        self.settings = {}
        self.stream.sendall(PREFACE)
        self.connection.send(SETTINGS, 0, 0)
        kind, _, _, content = self.connection.receive()
        assert kind == SETTINGS, "the server does not begin with its settings"
        for place in range(0, len(content), 6):
            key, value = struct.unpack_from("!HI", content, place)
            self.settings[key] = value
        self.connection.send(SETTINGS, ACK, 0)

    def request(self, method, path, *fields, end=False):
        head = [(":method", method), (":scheme", "https"), (":path", path), (":authority", self.name), *fields]
        # Pseudo-header fields come first.
        head.sort(key=lambda field: not field[0].startswith(":"))
        self.connection.send(HEADERS, END_HEADERS | (END_STREAM if end else 0), 1, block(*head))

    def send(self, content, end=False):
        self.connection.send(DATA, END_STREAM if end else 0, 1, content)

    def wait(self, wanted):
        """The content and the flags of the next frame of this kind on the stream."""
        while frame := self.connection.receive():
            kind, flags, number, content = frame
            if self.connection.answer(kind, flags, content):
                continue
            assert kind not in (RST_STREAM, GOAWAY), "the stream was reset"
            if kind == wanted and number == 1:
                return content, flags
        raise AssertionError("the connection was closed")

    def close(self):
        self.stream.close()
