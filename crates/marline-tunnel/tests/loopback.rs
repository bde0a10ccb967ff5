//! A server and clients in one process, over loopback, with channels instead of network devices.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test's helper fails by panicking")]

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Frame;
use marline::{MultipathConfig, PathPolicy, TransportConfig};
use marline_h3::Protocol;
use marline_http::client::{
    Client, ClientConfig, Connection, Download, HttpVersion, Origin, Trust, parse_url,
};
use marline_http::http3::Datagrams;
use marline_http::server::{Identity, MetricsSource, Protocols, Server, ServerConfig};
use marline_http::{Body, BoxError};
use marline_tunnel::client::{self, Ended, Mode, OpenError, Session};
use marline_tunnel::counters::{Counters, Dropped};
use marline_tunnel::device::{Burst, Device};
use marline_tunnel::pool::Pool;
use marline_tunnel::server::{self, Tunnels};
use marline_tunnel::tokens::{Token, Tokens};
use tokio::sync::mpsc;

/// A device of a host that the test plays.
struct Channel {
    sent: Mutex<mpsc::UnboundedReceiver<Vec<u8>>>,
    delivered: mpsc::UnboundedSender<Vec<u8>>,
}

/// The host of a [`Channel`].
struct Host {
    send: mpsc::UnboundedSender<Vec<u8>>,
    delivered: mpsc::UnboundedReceiver<Vec<u8>>,
}

impl Device for Channel {
    fn poll_recv(&self, cx: &mut Context<'_>, burst: &mut Burst) -> Poll<io::Result<()>> {
        self.sent.lock().unwrap().poll_recv(cx).map(|packet| {
            burst.fill(&packet.ok_or(io::ErrorKind::NotConnected)?);
            Ok(())
        })
    }

    fn send(&self, packet: &[u8]) -> io::Result<()> {
        let sent = self.delivered.send(packet.to_vec());
        sent.map_err(|_| io::ErrorKind::NotConnected.into())
    }
}

fn device() -> (Arc<Channel>, Host) {
    let (send, sent) = mpsc::unbounded_channel();
    let (deliver, delivered) = mpsc::unbounded_channel();
    let channel = Channel {
        sent: Mutex::new(sent),
        delivered: deliver,
    };
    (Arc::new(channel), Host { send, delivered })
}

impl Host {
    /// The next packet that is not of the kernel's own making.
    async fn next(&mut self) -> Vec<u8> {
        self.delivered.recv().await.unwrap()
    }
}

/// A running server.
struct Running {
    address: SocketAddr,
    tunnels: Arc<Tunnels>,
    host: Host,
    token: Token,
    _directory: tempfile::TempDir,
}

/// The transport of both ends, whose datagrams stay small.
fn transport(set: impl Fn(&mut TransportConfig)) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.mtu.discover = false;
    transport.multipath = Some(MultipathConfig::default());
    set(&mut transport);
    Arc::new(transport)
}

async fn serve(per_user: usize, destinations: &[&str]) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tokens");
    let token = Token::random().unwrap();
    std::fs::write(&file, token.line("anna")).unwrap();
    let prefixes = ["10.77.0.0/24", "fd77::/64"].map(|text| text.parse().unwrap());
    let config = server::ServerConfig {
        tokens: Tokens::read(&file).unwrap(),
        pool: Pool::new(&prefixes, per_user).unwrap(),
        destinations: destinations.iter().map(|to| to.parse().unwrap()).collect(),
        split_tcp: true,
        proxy_udp: true,
        resolvers: vec!["192.0.2.53".parse().unwrap()],
    };
    let (channel, host) = device();
    let tunnels = Tunnels::new(config, channel);
    let passing = Arc::clone(&tunnels);
    tokio::spawn(async move { passing.run().await });
    let identity = Identity::self_signed(vec!["localhost".to_owned()]).unwrap();
    let mut config = ServerConfig::new(([127, 0, 0, 1], 0).into(), identity, tunnels.site());
    config.protocols = Protocols {
        http1: false,
        http2: false,
        http3: true,
        cleartext: false,
        tunnels: false,
        http3_tunnels: true,
    };
    config.quic.transport = transport(server::set_transport);
    let server = Server::bind(config).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    Running {
        address,
        tunnels,
        host,
        token,
        _directory: directory,
    }
}

impl Running {
    fn origin(&self) -> Origin {
        let url = format!("https://{}/", self.address);
        parse_url(&url, HttpVersion::Http3).unwrap().origin
    }

    fn client(&self) -> Client {
        self.client_over(&[])
    }

    /// A client whose connections use these paths.
    fn client_over(&self, paths: &[&str]) -> Client {
        let mut config = ClientConfig {
            trust: Trust::Insecure,
            datagrams: true,
            stall_timeout: None,
            ..ClientConfig::default()
        };
        config.quic.transport = transport(client::set_transport);
        let rules: Vec<_> = paths.iter().map(|path| path.parse().unwrap()).collect();
        config.paths = (!rules.is_empty()).then(|| PathPolicy {
            rules,
            ..PathPolicy::default()
        });
        Client::new(config).unwrap()
    }

    async fn session(&self) -> Result<Session, OpenError> {
        self.session_with(self.token.as_str()).await
    }

    async fn session_with(&self, token: &str) -> Result<Session, OpenError> {
        let client = Arc::new(self.client());
        Session::open(client, &self.origin(), token, Mode::Fast, Arc::default()).await
    }

    fn dropped(&self, why: Dropped) -> u64 {
        self.tunnels.counters().dropped(why)
    }
}

/// A packet of UDP.
fn udp(source: IpAddr, destination: IpAddr, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let mut packet = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 64, 17, 0, 0];
            packet[2..4].copy_from_slice(&(20 + length).to_be_bytes());
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
            packet[4..6].copy_from_slice(&length.to_be_bytes());
            packet.extend(source.octets());
            packet.extend(destination.octets());
            packet
        }
        _ => panic!("two families"),
    };
    for word in [1000, 2000, length, 0] {
        packet.extend(u16::to_be_bytes(word));
    }
    packet.extend(payload);
    packet
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Destinations of both families.
const ALL: &[&str] = &["0.0.0.0/0", "::/0"];

#[tokio::test]
async fn packets_pass_in_both_directions() {
    let mut server = serve(1, ALL).await;
    let session = server.session().await.unwrap();
    let own: Vec<_> = session.addresses().iter().map(|own| own.addr()).collect();
    assert_eq!(own, [address("10.77.0.2"), address("fd77::2")]);
    assert_eq!(session.resolvers(), [address("192.0.2.53")]);
    let (channel, mut host) = device();
    let running = tokio::spawn(async move { session.run(&*channel, |_| {}).await });
    for (own, other) in own.iter().zip(["192.0.2.1", "2001:db8::1"]) {
        let there = udp(*own, address(other), b"there");
        host.send.send(there.clone()).unwrap();
        assert_eq!(server.host.next().await, there);
        let back = udp(address(other), *own, b"back");
        server.host.send.send(back.clone()).unwrap();
        assert_eq!(host.next().await, back);
    }
    drop(host);
    running.await.unwrap();
}

#[tokio::test]
async fn small_packets_are_sent_on_two_paths_and_delivered_once() {
    let mut server = serve(1, ALL).await;
    let client = Arc::new(server.client_over(&["127.0.0.1", "127.0.0.2"]));
    let counters = Arc::<Counters>::default();
    let (origin, token) = (server.origin(), server.token.as_str());
    let session = Session::open(client, &origin, token, Mode::Steady, Arc::clone(&counters));
    let session = session.await.unwrap();
    let (channel, mut host) = device();
    let running = tokio::spawn(async move { session.run(&*channel, |_| {}).await });
    let (own, other) = (address("10.77.0.2"), address("192.0.2.1"));
    let both_copy = async {
        let mut left = 50;
        for number in 0_u64.. {
            let payload = number.to_be_bytes();
            let there = udp(own, other, &payload);
            host.send.send(there.clone()).unwrap();
            // A copy that is delivered comes instead of the next.
            assert_eq!(server.host.next().await, there);
            let back = udp(other, own, &payload);
            server.host.send.send(back.clone()).unwrap();
            assert_eq!(host.next().await, back);
            // The second path takes a moment.
            let copied = [counters.copied(), server.tunnels.counters().copied()];
            left -= u32::from(copied.iter().all(|copied| *copied > 0));
            if left == 0 {
                break;
            }
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(60), both_copy).await;
    assert!(in_time.is_ok(), "{counters:?}");
    drop(host);
    running.await.unwrap();
}

#[tokio::test]
async fn packets_of_the_minimum_mtu_pass_and_larger_ones_are_answered() {
    let mut server = serve(1, ALL).await;
    let session = server.session().await.unwrap();
    // Datagrams of 1200 bytes have no room for one.
    assert_eq!(session.mtu(), 1280);
    let (channel, mut host) = device();
    let running = tokio::spawn(async move { session.run(&*channel, |_| {}).await });
    for (own, other, header) in [
        ("10.77.0.2", "192.0.2.1", 28),
        ("fd77::2", "2001:db8::1", 48),
    ] {
        let (own, other) = (address(own), address(other));
        let whole = udp(own, other, &vec![7; 1280 - header]);
        host.send.send(whole.clone()).unwrap();
        assert_eq!(server.host.next().await, whole);
        let back = udp(other, own, &vec![7; 1280 - header]);
        server.host.send.send(back.clone()).unwrap();
        assert_eq!(host.next().await, back);
        // Its sender learns what fits.
        let large = udp(other, own, &vec![7; 1300]);
        server.host.send.send(large).unwrap();
        let message = server.host.next().await;
        let (kind, mtu) = match own.is_ipv4() {
            true => (&message[20..22], &message[26..28]),
            false => (&message[40..42], &message[46..48]),
        };
        assert_eq!(kind, if own.is_ipv4() { [3, 4] } else { [2, 0] });
        assert_eq!(mtu, 1280_u16.to_be_bytes());
        // On the host of the client, too, as from an address that is not its own.
        host.send.send(udp(own, other, &vec![7; 1300])).unwrap();
        let message = host.next().await;
        let source = match other {
            IpAddr::V4(other) => (message[12..16] == other.octets(), message[20..22] == [3, 4]),
            IpAddr::V6(other) => (message[8..24] == other.octets(), message[40..42] == [2, 0]),
        };
        assert_eq!(source, (true, true));
    }
    assert_eq!(server.dropped(Dropped::TooLarge), 2);
    drop(host);
    running.await.unwrap();
}

#[tokio::test]
async fn a_tunnel_needs_a_token_that_the_server_knows() {
    let server = serve(1, ALL).await;
    for token in ["x", &server.token.as_str()[1..]] {
        let refused = server.session_with(token).await.err();
        assert!(
            matches!(refused, Some(OpenError::Unauthorized)),
            "{refused:?}"
        );
    }
    for token in ["", " ", "a\nb"] {
        let refused = server.session_with(token).await.err();
        assert!(matches!(refused, Some(OpenError::Token)), "{refused:?}");
    }
}

#[tokio::test]
async fn tokens_that_are_read_while_a_server_stops_open_no_tunnels() {
    let server = serve(1, ALL).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), server.token.line("anna")).unwrap();
    server.session().await.expect("it has not stopped yet");
    server.tunnels.close();
    let tokens = Tokens::read(file.path()).unwrap();
    server.tunnels.replace_tokens(tokens);
    let refused = server.session().await.err();
    assert!(
        matches!(refused, Some(OpenError::Unauthorized)),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_tunnel_of_a_user_whose_token_is_revoked_ends() {
    let server = serve(1, ALL).await;
    let files = tempfile::tempdir().unwrap();
    let tokens = |lines: &[String]| {
        let file = files.path().join("tokens");
        std::fs::write(&file, lines.join("\n")).unwrap();
        Tokens::read(&file).unwrap()
    };
    let anna = &server.token;
    let bob = Token::random().unwrap();
    let (channel, _host) = device();
    let session = server.session().await.unwrap();
    let running = tokio::spawn(async move { session.run(&*channel, |_| {}).await });

    // A user who stays keeps the tunnel, also of those that were there before.
    let both = [anna.line("anna"), bob.line("bob")];
    server.tunnels.replace_tokens(tokens(&both));
    let (other_channel, _other_host) = device();
    let of_bob = server.session_with(bob.as_str()).await.unwrap();
    let bobs = tokio::spawn(async move { of_bob.run(&*other_channel, |_| {}).await });
    assert!(!running.is_finished());

    server.tunnels.replace_tokens(tokens(&both[1..]));
    let ended = running.await.unwrap();
    assert!(matches!(ended, Ended::Finished | Ended::Lost(_)), "{ended}");
    let refused = server.session().await.err();
    assert!(
        matches!(refused, Some(OpenError::Unauthorized)),
        "{refused:?}"
    );
    assert!(!bobs.is_finished());
    let mut page = String::new();
    server.tunnels.write(&mut page).unwrap();
    for (reason, number) in [("unknown_token", 1), ("no_token", 0), ("user_limit", 0)] {
        let line = format!("marline_tunnel_refused_total{{reason=\"{reason}\"}} {number}\n");
        assert!(page.contains(&line), "{page}");
    }
}

#[tokio::test]
async fn the_addresses_of_a_tunnel_that_has_ended_are_assigned_again() {
    let server = serve(1, ALL).await;
    let first = server.session().await.unwrap();
    let addresses = first.addresses().to_vec();
    let refused = server.session().await.err();
    let Some(OpenError::Refused { status, reason }) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(reason, "the user has 1 tunnels already");
    drop(first);
    // The server learns of it a moment later.
    let again = loop {
        match server.session().await {
            Ok(session) => break session,
            Err(OpenError::Refused { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(again.addresses(), addresses);
}

/// A client that keeps to no rules.
struct Raw {
    capsules: mpsc::UnboundedSender<Vec<u8>>,
    response: Response<Download>,
    _connection: Connection,
    _client: Client,
}

struct Content(mpsc::UnboundedReceiver<Vec<u8>>);

impl http_body::Body for Content {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let bytes = self.0.poll_recv(cx);
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes.into()))))
    }
}

impl Raw {
    async fn request(server: &Running, protocol: &str, path: &str) -> Self {
        let (client, origin) = (server.client(), server.origin());
        let connection = client.connect(&origin).await.unwrap();
        let (capsules, content) = mpsc::unbounded_channel();
        let mut request = Request::new(Body::new(Content(content)));
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = format!("{origin}{path}").parse().unwrap();
        let token = format!("bearer {}", server.token.as_str());
        let token = HeaderValue::try_from(token).unwrap();
        request.headers_mut().insert("authorization", token);
        let protocol = Protocol::new(protocol).unwrap();
        request.extensions_mut().insert(protocol);
        let response = connection.request(&origin, request).await.unwrap();
        Self {
            capsules,
            response,
            _connection: connection,
            _client: client,
        }
    }

    fn datagrams(&self) -> Datagrams {
        let datagrams = self.response.extensions().get::<Datagrams>();
        datagrams.unwrap().clone()
    }

    /// The rest of the response.
    async fn ended(&mut self) {
        while let Ok(Some(_)) = self.response.body_mut().chunk().await {}
    }
}

const PATH: &str = "/.well-known/masque/ip/*/*/";

#[tokio::test]
async fn packets_that_a_client_may_not_send_are_dropped_and_counted() {
    let mut server = serve(1, &["192.0.2.0/24", "2001:db8::/32"]).await;
    let raw = Raw::request(&server, "connect-ip", PATH).await;
    assert_eq!(raw.response.status(), StatusCode::OK);
    assert_eq!(raw.response.headers()["capsule-protocol"], "?1");
    let datagrams = raw.datagrams();
    let packet = |source, destination| udp(address(source), address(destination), b"");
    let good = packet("10.77.0.2", "192.0.2.1");
    for (context, packet) in [
        (0, packet("10.77.0.3", "192.0.2.1")),
        (0, packet("fd77::3", "2001:db8::1")),
        (0, packet("10.77.0.2", "198.51.100.1")),
        (0, packet("10.77.0.2", "127.0.0.1")),
        (0, packet("fe80::1", "2001:db8::1")),
        (0, packet("fd77::2", "ff02::1")),
        (0, good[1..].to_vec()),
        (0, vec![]),
        // No such context was agreed on.
        (2, good.clone()),
        (0, good.clone()),
    ] {
        datagrams
            .send(&[&[context], &packet[..]].concat())
            .await
            .unwrap();
    }
    assert_eq!(server.host.next().await, good);
    assert_eq!(server.dropped(Dropped::ForgedSource), 2);
    assert_eq!(server.dropped(Dropped::NoRoute), 1);
    assert_eq!(server.dropped(Dropped::Unroutable), 3);
    assert_eq!(server.dropped(Dropped::Malformed), 3);
    // And none to addresses that no client has.
    server
        .host
        .send
        .send(packet("192.0.2.1", "10.77.0.9"))
        .unwrap();
    server
        .host
        .send
        .send(packet("192.0.2.1", "10.77.0.2"))
        .unwrap();
    let back = datagrams.recv().await.unwrap();
    assert_eq!(back[1..], packet("192.0.2.1", "10.77.0.2"));
    assert_eq!(server.dropped(Dropped::OtherDestination), 1);
}

#[tokio::test]
async fn malformed_capsules_end_the_tunnel() {
    let server = serve(100, ALL).await;
    for capsule in [
        // An address request without an address, and one with the number 0.
        &[2, 0][..],
        &[2, 7, 0, 4, 0, 0, 0, 0, 32],
        // A range that ends before it starts.
        &[3, 10, 4, 9, 9, 9, 9, 1, 1, 1, 1, 0],
        // An assignment of a gigabyte.
        &[2, 0xbf, 0xff, 0xff, 0xff],
    ] {
        let mut raw = Raw::request(&server, "connect-ip", PATH).await;
        // Unknown ones are skipped.
        raw.capsules.send(vec![0x29, 3, 1, 2, 3]).unwrap();
        raw.capsules.send(capsule.to_vec()).unwrap();
        raw.ended().await;
    }
}

#[tokio::test]
async fn other_requests_are_refused() {
    let server = serve(1, &["192.0.2.0/24"]).await;
    for (protocol, path, status) in [
        ("websocket", "/", 404),
        ("connect-ip", "/", 400),
        ("connect-ip", "/.well-known/masque/ip/example.org/*/", 400),
        (
            "connect-ip",
            "/.well-known/masque/ip/198.51.100.0%2F24/*/",
            403,
        ),
        ("connect-ip", "/.well-known/masque/ip/192.0.2.1/17/", 200),
    ] {
        let raw = Raw::request(&server, protocol, path).await;
        assert_eq!(raw.response.status(), status, "{path}");
    }
}

#[tokio::test]
async fn connections_are_opened_for_users_and_to_allowed_destinations() {
    let server = serve(1, ALL).await;
    let (client, origin) = (server.client(), server.origin());
    let connection = client.connect(&origin).await.unwrap();
    // A service of this host, which no client may reach.
    let service = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = service.local_addr().unwrap().port();
    let valid = format!("Bearer {}", server.token.as_str());
    for (token, host, status, reason) in [
        (None, "127.0.0.1", 407, None),
        (Some("Bearer x"), "192.0.2.1", 407, None),
        (Some(&*valid), "127.0.0.1", 403, Some("prohibited")),
        (Some(&*valid), "localhost", 403, Some("prohibited")),
        (Some(&*valid), "[::1]", 403, Some("prohibited")),
        (Some(&*valid), "169.254.169.254", 403, Some("prohibited")),
        (Some(&*valid), "10.77.0.9", 403, Some("prohibited")),
    ] {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = Method::CONNECT;
        *request.uri_mut() = format!("{host}:{port}").parse().unwrap();
        if let Some(token) = token {
            let token = HeaderValue::try_from(token).unwrap();
            request.headers_mut().insert("proxy-authorization", token);
        }
        let response = connection.request(&origin, request).await.unwrap();
        assert_eq!(response.status(), status, "{host}");
        let field = response.headers().get("proxy-status");
        let has_reason =
            |reason| field.is_some_and(|field| field.to_str().unwrap_or_default().contains(reason));
        assert!(reason.is_none_or(has_reason), "{host}: {field:?}");
        // Only a client is reached by packets instead.
        let packets = response.headers().contains_key("marline-tcp");
        assert_eq!(packets, host == "10.77.0.9", "{host}");
    }
    service.set_nonblocking(true).unwrap();
    assert!(service.accept().is_err());
}

#[tokio::test]
async fn sockets_of_udp_are_opened_for_users_and_to_allowed_destinations() {
    let server = serve(1, &["127.0.0.0/8", "192.0.2.0/24", "10.77.0.0/24"]).await;
    for (target, status) in [
        // A service of this host, and one of another client.
        ("127.0.0.1/53", 403),
        ("localhost/53", 403),
        ("10.77.0.9/53", 403),
        ("198.51.100.1/53", 403),
        ("169.254.169.254/80", 403),
        ("255.255.255.255/67", 403),
        ("224.0.0.251/5353", 403),
        ("%5B%3A%3A1%5D/53", 400),
        ("192.0.2.1/0", 400),
        ("192.0.2.1", 400),
        ("no-such-name.invalid/53", 502),
    ] {
        let path = format!("/.well-known/masque/udp/{target}/");
        let raw = Raw::request(&server, "connect-udp", &path).await;
        assert_eq!(raw.response.status(), status, "{target}");
    }
    let mut page = String::new();
    server.tunnels.write(&mut page).unwrap();
    for line in [
        "marline_tunnel_udp_requests_total{result=\"opened\"} 0\n",
        "marline_tunnel_udp_requests_total{result=\"unauthorized\"} 0\n",
        "marline_tunnel_udp_sockets 0\n",
    ] {
        assert!(page.contains(line), "{page}");
    }
}
