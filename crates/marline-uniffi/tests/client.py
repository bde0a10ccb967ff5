"""Uses each class of the client: `client.py PORT ECHO_PORT CERTIFICATE`, with a server of HTTP/3 and one that returns what it gets."""

import sys
import threading
from datetime import timedelta

from marline_client import Client, Header, MarlineError

port, echo_port, certificate = sys.argv[1:]


def fails(call):
    try:
        call()
    except MarlineError as error:
        return str(error)
    sys.exit("no error")


# Options and arguments are checked.
assert "migrate" in fails(lambda: Client({"migrating": "true"}))
client = Client({"trust": certificate})
assert "method" in fails(lambda: client.request("A B", f"https://localhost:{port}/", [], b""))
assert "header field" in fails(lambda: client.request("GET", f"https://localhost:{port}/", [Header(name="a b", value="")], b""))

# A request, whose content arrives in parts.
fields = [Header(name="range", value="bytes=1000-200999")]
response = client.request("GET", f"https://localhost:{port}/a.bin", fields, b"")
assert (response.status(), response.version()) == (206, "HTTP/3"), response.status()
assert Header(name="content-length", value="200000") in response.headers(), response.headers()
content = b"".join(iter(lambda: response.read(65536), b""))
assert content == bytes(index % 256 for index in range(1000, 201000)), len(content)
paths = response.connection().paths()
assert len(paths) == 1 and paths[0].is_open and paths[0].remote == f"127.0.0.1:{port}", paths
assert response.connection().statistics().bytes_received > 200000

# A certificate that is not trusted.
assert "certificate" in fails(lambda: Client({}).request("GET", f"https://localhost:{port}/a.bin", [], b""))

# A protocol of one's own: one thread reads what another writes.
connection = client.connect(f"https://localhost:{echo_port}", "echo")
stream = connection.open_stream(True)
reads = []
reader = threading.Thread(target=lambda: reads.extend(iter(lambda: stream.read(100), b"")))
reader.start()
stream.write(b"stream")
stream.finish()
reader.join()
assert b"".join(reads) == b"stream", reads
assert "only sends" in fails(lambda: connection.open_stream(False).read(1))
assert connection.datagram_limit() > 1000
connection.send_datagram(b"datagram")
assert connection.receive_datagram(timedelta(seconds=10)) == b"datagram"
assert connection.receive_datagram(timedelta()) is None
connection.close_with(0)
fails(lambda: connection.open_stream(True))
