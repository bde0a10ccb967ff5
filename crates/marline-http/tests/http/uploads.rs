//! Requests with content that the server does not read.

use std::net::SocketAddr;
use std::sync::Arc;

use marline_http::server::{Identity, directory};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::common::{TestServer, directory_of};

// Types and flags of frames (RFC 9113 section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `POST /file` to `localhost` (RFC 7541 section 6): two indexed fields, and two literals with indexed names.
const POST: &[u8] = b"\x83\x87\x04\x05/file\x01\x09localhost";

/// A client of HTTP/2 that reads every frame. hyper's hides a reset that follows a response.
struct FrameClient(TlsStream<TcpStream>);

struct Frame {
    kind: u8,
    flags: u8,
    stream: u8,
    payload: Vec<u8>,
}

impl FrameClient {
    /// Connects with `identity` as the only trust anchor.
    async fn connect(address: SocketAddr, identity: &Identity) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(identity.chain()[0].clone()).unwrap();
        let provider = Arc::new(marline::default_crypto_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let connector = TlsConnector::from(Arc::new(tls));
        let mut client = Self(connector.connect(name, stream).await.unwrap());
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        client.0.write_all(preface).await.unwrap();
        client.send(SETTINGS, 0, 0, &[]).await;
        client
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
        frame.extend_from_slice(&[kind, flags]);
        frame.extend_from_slice(&stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.0.write_all(&frame).await.unwrap();
        self.0.flush().await.unwrap();
    }

    async fn receive(&mut self) -> Frame {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.unwrap();
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; len as usize];
        self.0.read_exact(&mut payload).await.unwrap();
        Frame {
            kind: head[3],
            flags: head[4],
            stream: head[8],
            payload,
        }
    }
}

/// RFC 9113, section 8.1.
#[tokio::test]
async fn an_upload_over_http2_that_nobody_reads_is_stopped_without_an_error_after_the_response() {
    let root = directory_of(&[("file", b"content")]);
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.identity = Some(identity.clone());
    })
    .await;
    let mut client = FrameClient::connect(server.address, &identity).await;
    client.send(HEADERS, END_HEADERS, 1, POST).await;
    let mut has_response = false;
    let mut window = 65_535;
    let stopped = loop {
        while window >= 16_000 {
            client.send(DATA, 0, 1, &[0; 16_000]).await;
            window -= 16_000;
        }
        let frame = client.receive().await;
        match (frame.kind, frame.stream) {
            (HEADERS, 1) => has_response = true,
            (WINDOW_UPDATE, 1) => {
                let update = <[u8; 4]>::try_from(&frame.payload[..]).unwrap();
                window += u32::from_be_bytes(update);
            }
            (RST_STREAM, 1) => break frame,
            (kind, _) => assert_ne!(kind, GOAWAY),
        }
    };
    assert!(has_response);
    assert_eq!(stopped.payload, [0; 4], "NO_ERROR");
}

#[tokio::test]
async fn a_refused_request_over_http_2_ends_with_its_response_and_without_a_reset() {
    let root = directory_of(&[("file", b"content")]);
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.identity = Some(identity.clone());
    })
    .await;
    let mut client = FrameClient::connect(server.address, &identity).await;
    client.send(HEADERS, END_HEADERS, 1, POST).await;
    client.send(DATA, 0, 1, &[0; 16_000]).await;
    let response = loop {
        let frame = client.receive().await;
        if frame.kind == HEADERS {
            break frame;
        }
    };
    assert_eq!(response.flags & END_STREAM, END_STREAM, "it has no content");
    // A literal of three digits in Huffman code is shorter than four bytes; 405 is not in the
    // static table.
    assert!(
        response.payload.starts_with(b"\x48"),
        "a status in a literal"
    );
    client.send(DATA, END_STREAM, 1, &[0; 16_000]).await;
    client.send(PING, 0, 0, &[7; 8]).await;
    let mut kinds = Vec::new();
    loop {
        let frame = client.receive().await;
        if frame.kind == PING && frame.flags == ACK {
            break;
        }
        kinds.push(frame.kind);
    }
    let reset = 3;
    assert!(!kinds.contains(&reset), "{kinds:?}");
}
