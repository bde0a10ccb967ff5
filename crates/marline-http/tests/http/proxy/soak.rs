//! The proxy in front of servers of Python and Node.js, on a larger scale (`make attack
//! ONLY=soak`).

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use marline_http::Body;
use marline_http::client::{HttpVersion, parse_url};
use tokio::time::Instant;

use super::proxy_with;
use crate::common::{TestServer, client_with};

/// Requests of the soak, over both applications.
const REQUESTS: usize = 100_000;

/// Requests at the same time on one connection.
const AT_ONCE: usize = 16;

const MIB: u64 = 1 << 20;

const PYTHON: &str = "
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_GET(self):
        body = (self.path * 10).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_PUT(self):
        left = int(self.headers['Content-Length'])
        total = 0
        while left > 0:
            part = self.rfile.read(min(left, 1 << 16))
            if not part:
                return
            left -= len(part)
            total += len(part)
        body = str(total).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *args):
        pass
class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 128
Server(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
";

const NODE: &str = "
require('http').createServer((request, response) => {
  if (request.method === 'PUT') {
    let total = 0;
    request.on('data', part => { total += part.length; });
    request.on('end', () => response.end(String(total)));
  } else if (request.url.startsWith('/big')) {
    const part = Buffer.alloc(1 << 20, 7);
    let left = Number(request.url.split('/')[2]);
    response.writeHead(200, { 'Content-Length': left * part.length });
    const write = () => {
      while (left > 0) { left -= 1; if (!response.write(part)) { response.once('drain', write); return; } }
      response.end();
    };
    write();
  } else {
    response.end(request.url.repeat(10));
  }
}).listen(Number(process.argv[1]), '127.0.0.1');
";

/// An application in a process of its own.
struct Program {
    child: Child,
    address: SocketAddr,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts one; `None` if the interpreter is missing.
async fn start(interpreter: &str, flag: &str, script: &str) -> Option<Program> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut command = Command::new(interpreter);
    command.args([flag, script, &address.port().to_string()]);
    let Ok(child) = command.stdin(Stdio::null()).spawn() else {
        println!("skipped: {interpreter} is not installed");
        return None;
    };
    let program = Program { child, address };
    for _ in 0..400 {
        if tokio::net::TcpStream::connect(address).await.is_ok() {
            return Some(program);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{interpreter} does not listen");
}

/// Memory of this process, which is client and proxy, in bytes.
fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = status.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// The most of [`memory`] until it is dropped.
struct Peak(Arc<AtomicU64>, tokio::task::JoinHandle<()>);

impl Peak {
    fn watch() -> Self {
        let peak = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&peak);
        let task = tokio::spawn(async move {
            loop {
                seen.fetch_max(memory(), SeqCst);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        Self(peak, task)
    }

    fn end(self) -> u64 {
        self.1.abort();
        self.0.load(SeqCst)
    }
}

async fn soak(address: SocketAddr) {
    let proxy = Arc::new(
        proxy_with(&[format!("http://{address}")], |config| {
            config.max_idle_connections = 32;
        })
        .await,
    );
    let started = Instant::now();
    let left = Arc::new(AtomicUsize::new(REQUESTS / 2));
    let mut workers = tokio::task::JoinSet::new();
    for version in [HttpVersion::Http3, HttpVersion::Http2] {
        let client = client_with(|config| config.version = version);
        let origin = parse_url(&proxy.url(version, "/"), version).unwrap().origin;
        let connection = Arc::new(client.connect(&origin).await.unwrap());
        for worker in 0..AT_ONCE {
            let (client, connection) = (Arc::clone(&client), Arc::clone(&connection));
            let (origin, proxy, left) = (origin.clone(), Arc::clone(&proxy), Arc::clone(&left));
            workers.spawn(async move {
                let _client = client;
                let take = || left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
                while let Ok(number) = take() {
                    let path = format!("/{worker}/{number}");
                    let mut request = Request::new(Body::empty());
                    *request.uri_mut() = proxy.url(version, &path).parse().unwrap();
                    let response = connection.request(&origin, request).await.unwrap();
                    assert_eq!(response.status(), StatusCode::OK);
                    let content = response.into_body().collect().await.unwrap().to_bytes();
                    assert_eq!(content, path.repeat(10));
                }
            });
        }
    }
    while let Some(ended) = workers.join_next().await {
        ended.unwrap();
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{} requests in {seconds:.1} s", REQUESTS / 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn requests_to_python() {
    if let Some(program) = start("python3", "-c", PYTHON).await {
        soak(program.address).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn requests_to_node() {
    if let Some(program) = start("node", "-e", NODE).await {
        soak(program.address).await;
    }
}

async fn exchange(proxy: &TestServer, method: Method, path: &str, parts: u64) -> u64 {
    let version = HttpVersion::Http3;
    let client = client_with(|config| config.version = version);
    let url = proxy.url(version, path);
    let origin = parse_url(&url, version).unwrap().origin;
    let connection = client.connect(&origin).await.unwrap();
    let part = Bytes::from(vec![7; MIB as usize]);
    let frames = (0..parts)
        .map(move |_| Ok::<_, std::convert::Infallible>(http_body::Frame::data(part.clone())));
    let body = match parts {
        0 => Body::empty(),
        _ => Body::new(StreamBody::new(futures_util::stream::iter(frames))),
    };
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() = url.parse().unwrap();
    if parts > 0 {
        request
            .headers_mut()
            .insert("content-length", (parts * MIB).into());
    }
    let response = connection.request(&origin, request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut download = response.into_body();
    let mut text = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        if parts > 0 {
            text.extend_from_slice(&chunk);
        }
    }
    match parts {
        0 => download.received(),
        _ => String::from_utf8(text).unwrap().parse().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "make attack"]
async fn a_gigabyte_each_way_does_not_grow_memory() {
    for (interpreter, flag, script) in [("python3", "-c", PYTHON), ("node", "-e", NODE)] {
        let Some(program) = start(interpreter, flag, script).await else {
            continue;
        };
        let proxy = proxy_with(&[format!("http://{}", program.address)], |_| {}).await;
        let before = memory();
        let peak = Peak::watch();
        let sent = exchange(&proxy, Method::PUT, "/", 1024).await;
        assert_eq!(sent, 1024 * MIB);
        if interpreter == "node" {
            let received = exchange(&proxy, Method::GET, "/big/1024", 0).await;
            assert_eq!(received, 1024 * MIB);
        }
        let grown = peak.end().saturating_sub(before) / MIB;
        println!("{interpreter}: memory grew by {grown} MiB at most");
        assert!(grown < 128, "{grown} MiB");
    }
}
