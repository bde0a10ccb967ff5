"""Applications for proxies to stand before: HTTP/1.1 over TCP, TLS or a Unix socket, with WebSocket."""

import base64
import contextlib
import hashlib
import http.server
import json
import os
import socketserver
import threading
import time

# RFC 6455, section 1.3.
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TICKS = 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "-"

    def do_GET(self):
        path = self.path.split("?")[0]
        length = int(self.headers.get("Content-Length") or 0)
        content = self.rfile.read(length)
        self.server.requests.append({"path": self.path, "headers": dict(self.headers.items()), "content": content})
        if self.headers.get("Upgrade", "").lower() == "websocket":
            self.websocket()
        elif path == "/slow":
            self.slow()
        elif path == "/health":
            self.respond(200 if self.server.healthy else 500, b"healthy" if self.server.healthy else b"ill")
        elif path.startswith("/status/"):
            self.respond(int(path.removeprefix("/status/")), b"from the application")
        elif path == "/text":
            self.respond(200, b"some text of an application. " * 400, "text/html")
        else:
            seen = {
                "app": self.server.name,
                "method": self.command,
                "path": self.path,
                "headers": dict(self.headers.items()),
            }
            self.respond(200, json.dumps(seen).encode(), "application/json")

    do_POST = do_PUT = do_HEAD = do_GET

    def respond(self, status, content, kind="text/plain"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Internal", "secret")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def slow(self):
        """Content for two seconds."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(TICKS):
            self.wfile.write(b"5\r\ntick\n\r\n")
            self.wfile.flush()
            time.sleep(0.1)
        self.wfile.write(b"0\r\n\r\n")

    def websocket(self):
        """Returns what arrives after the handshake, byte for byte."""
        key = self.headers.get("Sec-WebSocket-Key", "").encode()
        accept = base64.b64encode(hashlib.sha1(key + WEBSOCKET).digest()).decode()
        self.send_response(101)
        for name, value in [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Accept", accept)]:
            self.send_header(name, value)
        self.end_headers()
        self.close_connection = True
        with contextlib.suppress(OSError):
            while content := self.connection.recv(4096):
                self.connection.sendall(content)


class App:
    """An application that serves until it is closed, and remembers its requests."""

    def __init__(self, place, name="app", context=None):
        family = socketserver.ThreadingTCPServer if isinstance(place, int) else socketserver.ThreadingUnixStreamServer

        class Server(family):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, *_):
                pass

            def get_request(self):
                stream, address = super().get_request()
                if context:
                    stream.settimeout(5)
                    try:
                        stream = context.wrap_socket(stream, server_side=True)
                    except OSError as error:
                        stream.close()
                        raise OSError(str(error)) from error
                    stream.settimeout(None)
                return stream, address or ("unix", 0)

        if not isinstance(place, int):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
        self.server = Server(("127.0.0.1", place) if isinstance(place, int) else str(place), Handler)
        if not isinstance(place, int):
            # Workers of nginx may be another user's.
            os.chmod(place, 0o666)
        self.server.name, self.server.healthy, self.server.requests = name, True, []
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def requests(self):
        return self.server.requests

    @property
    def healthy(self):
        return self.server.healthy

    @healthy.setter
    def healthy(self, value):
        self.server.healthy = value

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def frame(text):
    """A masked text frame of WebSocket (RFC 6455, section 5.2), with a mask of zeros."""
    content = text.encode()
    return bytes([0x81, 0x80 | len(content)]) + bytes(4) + content


def websocket(stream, host, path):
    """Opens a WebSocket over HTTP/1.1; whether a frame comes back."""
    key = base64.b64encode(os.urandom(16)).decode()
    stream.sendall(
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    file = stream.makefile("rb")
    status = file.readline()
    assert b" 101 " in status, f"answers {status.decode().strip()!r} to an Upgrade"
    while file.readline().strip():
        pass
    stream.sendall(frame("hello"))
    stream.settimeout(5)
    assert file.read(len(frame("hello"))) == frame("hello"), "the frame does not come back"
