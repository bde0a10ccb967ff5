//! HTTP/2 as written by hand: floods of frames, and clients that only appear to be active.

use std::sync::Arc;
use std::time::Duration;

use marline_http::limits;
use marline_http::server::directory;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::budgets::{LARGE, begin, connect_from};
use crate::common::{TestServer, directory_of, pattern};

/// Accepts every certificate.
#[derive(Debug)]
struct Anything;

impl ServerCertVerifier for Anything {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::ED25519,
        ]
    }
}

/// The beginning of a client, with streams that may carry nothing: SETTINGS_INITIAL_WINDOW_SIZE is 0.
const BEGINNING: &[u8] =
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00";
/// GET / on stream 1.
pub(crate) const REQUEST: &[u8] =
    b"\x00\x00\x0e\x01\x05\x00\x00\x00\x01\x82\x84\x87\x41\x09localhost";
/// GET with a path of two bytes.
pub(crate) fn request(stream: u8, path: &str) -> Vec<u8> {
    let [header, fields] = [&b"\x00\x00\x11\x01\x05\x00\x00\x00"[..], b"\x82\x04\x02"];
    let end = b"\x87\x41\x09localhost";
    [header, &[stream], fields, path.as_bytes(), end].concat()
}
pub(crate) const PING: &[u8] = b"\x00\x00\x08\x06\x00\x00\x00\x00\x0012345678";
pub(crate) const SETTINGS: &[u8] = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00";
/// The end of GOAWAY with ENHANCE_YOUR_CALM.
pub(crate) const CALM: &[u8] = b"\x00\x00\x00\x0b";

pub(crate) async fn connect(server: &TestServer) -> TlsStream<TcpStream> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(BEGINNING).await.unwrap();
    stream
}

/// The type of a frame with the header of a response.
const HEADERS: u8 = 1;

/// Reads a frame; returns its type.
async fn read_frame(stream: &mut TlsStream<TcpStream>) -> u8 {
    let mut header = [0; 9];
    stream.read_exact(&mut header).await.unwrap();
    let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await.unwrap();
    header[3]
}

/// A server of one file.
struct Served {
    server: TestServer,
    _root: TempDir,
}

async fn serve(content: &[u8], idle_timeout: Duration) -> Served {
    let root = directory_of(&[("index.html", content)]);
    let site = directory(root.path(), false).unwrap();
    let server = TestServer::with(site, |config| config.limits.idle_timeout = idle_timeout).await;
    Served {
        server,
        _root: root,
    }
}

/// The outcome of a flood.
pub(crate) struct Flood {
    /// The number of times that the frames were sent.
    pub(crate) sent: usize,
    /// All that the server has sent.
    pub(crate) received: Vec<u8>,
}

/// Sends `frames` at intervals until the connection ends, or they were sent `limit` times.
pub(crate) async fn send_until_closed(
    stream: TlsStream<TcpStream>,
    frames: &[u8],
    interval: Option<Duration>,
    limit: usize,
) -> Flood {
    let (mut reader, mut writer) = tokio::io::split(stream);
    let reading = tokio::spawn(async move {
        let mut received = Vec::new();
        // It may end without close_notify.
        let _ = reader.read_to_end(&mut received).await;
        received
    });
    let mut sent = 0;
    while sent < limit && !reading.is_finished() {
        if writer.write_all(frames).await.is_err() || writer.flush().await.is_err() {
            break;
        }
        sent += 1;
        if let Some(interval) = interval {
            tokio::time::sleep(interval).await;
        }
    }
    drop(writer);
    let received = tokio::time::timeout(Duration::from_secs(60), reading);
    Flood {
        sent,
        received: received.await.expect("it ends").unwrap(),
    }
}

#[tokio::test]
async fn floods_of_frames_that_need_no_request_are_cut_off() {
    let served = serve(b"content", limits::IDLE_TIMEOUT).await;
    for (name, frame) in [("PING", PING), ("SETTINGS", SETTINGS)] {
        let stream = connect(&served.server).await;
        let frames = frame.repeat(100);
        let Flood { sent, received } = send_until_closed(stream, &frames, None, 100_000).await;
        assert!(sent < 100_000, "{name} is not cut off");
        assert!(received.ends_with(CALM), "{name}: {}", received.len());
    }
}

#[tokio::test]
async fn pings_do_not_keep_a_response_alive_that_is_not_read() {
    let idle_timeout = Duration::from_millis(500);
    let served = serve(&pattern(100_000), idle_timeout).await;
    let mut stream = connect(&served.server).await;
    stream.write_all(REQUEST).await.unwrap();
    let interval = Some(Duration::from_millis(20));
    let Flood { sent, received } = send_until_closed(stream, PING, interval, 500).await;
    assert!((10..500).contains(&sent), "{sent}");
    // The response is cancelled, and its connection is then one without requests.
    let cancelled = [0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 8];
    let mut frames = received.windows(cancelled.len());
    assert!(frames.any(|frame| frame == cancelled));
    assert!(received.ends_with(b"\x7f\xff\xff\xff\x00\x00\x00\x00"));
}

#[tokio::test]
async fn a_connection_without_requests_ends_without_an_error() {
    let served = serve(b"content", Duration::from_millis(200)).await;
    let stream = connect(&served.server).await;
    let interval = Some(Duration::from_millis(20));
    let Flood { received, .. } = send_until_closed(stream, PING, interval, 500).await;
    assert!(received.ends_with(b"\x7f\xff\xff\xff\x00\x00\x00\x00"));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_connection_that_makes_room_for_others_ends_with_goaway() {
    let names: Vec<_> = (0..9).map(|name| name.to_string()).collect();
    let large = pattern(LARGE);
    let files: Vec<_> = names.iter().map(|name| (&**name, &large[..])).collect();
    let root = directory_of(&files);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.limits.max_open_files = 8;
    })
    .await;
    // Networks that hold all files together, this one the most.
    let mut stream = connect(&server).await;
    for (number, name) in [(1, "/0"), (3, "/1"), (5, "/2"), (7, "/3")] {
        stream.write_all(&request(number, name)).await.unwrap();
    }
    let mut answers = 0;
    while answers < 4 {
        answers += usize::from(read_frame(&mut stream).await == HEADERS);
    }
    let mut others = Vec::new();
    for (network, name) in [(5, "/4"), (5, "/5"), (6, "/6"), (7, "/7"), (9, "/8")] {
        let mut other = connect_from(&server, [127, 0, network, 1]).await;
        let answer = begin(&mut other, name).await;
        assert!(answer.contains("200"), "{name}: {answer}");
        others.push(other);
    }
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(rest.ends_with(CALM), "{rest:x?}");
}
