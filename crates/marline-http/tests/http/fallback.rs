//! HTTP/2 where HTTP/3 does not connect.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use marline_http::client::{
    Client, ClientError, FetchOptions, HttpVersion, Progress, Report, Trust, parse_url,
};

use crate::common::{TestServer, client_with, directory_of, discarded, until};

/// Below the time limit of a handshake.
const LIMIT: Duration = Duration::from_secs(8);

/// A server of one file whose UDP port is closed.
async fn without_quic(root: &std::path::Path) -> TestServer {
    let site = marline_http::server::directory(root, false).unwrap();
    TestServer::with(site, |config| config.protocols.http3 = false).await
}

async fn fetch(server: &TestServer, fallback: bool, connections: usize) -> Report {
    let client = client_with(|config| {
        config.fallback = fallback;
    });
    let targets = (0..connections).map(|_| discarded(server.url(HttpVersion::Http3, "/file")));
    let options = FetchOptions {
        connections,
        ..FetchOptions::default()
    };
    let progress = Arc::new(Progress::default());
    client.fetch(targets.collect(), options, &progress).await
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_used_where_http3_does_not_connect() {
    let root = directory_of(&[("file", b"content")]);
    let server = without_quic(root.path()).await;
    let report = tokio::time::timeout(LIMIT, fetch(&server, true, 3)).await;
    let report = report.unwrap();
    assert!(report.is_complete(), "{report:?}");
    for connection in &report.connections {
        assert_eq!(connection.http_version, "2");
    }
    assert!(
        report
            .objects
            .iter()
            .all(|object| object.http_version == "2")
    );
}

/// A server that loses QUIC between two visits of one client.
struct Changing {
    root: tempfile::TempDir,
    server: TestServer,
    client: Arc<Client>,
}

impl Changing {
    /// The client has visited once, over QUIC, the only transport then.
    async fn visited(zero_rtt: bool) -> Self {
        let root = directory_of(&[("file", b"content")]);
        let site = marline_http::server::directory(root.path(), false).unwrap();
        let server = TestServer::with(site, |config| {
            // Other tests bind no ports of it.
            config.listen = ([127, 7, 0, 2], 0).into();
            config.protocols.http2 = false;
        })
        .await;
        let client = client_with(|config| {
            config.fallback = true;
            config.quic.zero_rtt = zero_rtt;
        });
        let this = Self {
            root,
            server,
            client,
        };
        let report = this.fetch(1).await;
        assert_eq!(report.connections[0].http_version, "3");
        tokio::time::timeout(LIMIT, this.has_session())
            .await
            .unwrap();
        this
    }

    /// Waits until the client has a session to resume. Tickets follow handshakes, each of which brings more than it uses.
    async fn has_session(&self) {
        let url = self.server.url(HttpVersion::Http3, "/file");
        let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
        loop {
            let connection = self.client.connect(&origin).await.unwrap();
            let quic = connection.quic().unwrap();
            quic.confirmed().await.unwrap();
            if quic.is_resumed() {
                break;
            }
        }
    }

    async fn fetch(&self, objects: usize) -> Report {
        let url = self.server.url(HttpVersion::Http3, "/file");
        let targets = (0..objects).map(|_| discarded(url.clone())).collect();
        let progress = Arc::default();
        let fetched = self
            .client
            .fetch(targets, FetchOptions::default(), &progress);
        let report = tokio::time::timeout(LIMIT, fetched).await.unwrap();
        assert!(report.is_complete(), "{report:?}");
        report
    }

    /// Another server, without QUIC, takes the place of the first.
    async fn close_quic(&mut self) {
        let address = self.server.address;
        self.server.handle.hurry();
        (&mut self.server.task).await.unwrap().unwrap();
        // The endpoint's own task closes its socket.
        until("the port is free", || UdpSocket::bind(address).is_ok()).await;
        let site = marline_http::server::directory(self.root.path(), false).unwrap();
        self.server = TestServer::with(site, |config| {
            config.listen = address;
            config.protocols.http3 = false;
        })
        .await;
    }

    /// All objects arrive over TCP, and QUIC is not tried again.
    async fn goes_on_over_tcp(&self) {
        let report = self.fetch(5).await;
        for object in &report.objects {
            assert_eq!(object.http_version, "2");
        }
        let again = self.fetch(1).await;
        assert_eq!(again.connections.len(), 1, "{again:?}");
        assert_eq!(again.connections[0].http_version, "2");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http2_is_used_where_http3_has_connected_before_and_does_no_longer() {
    let mut place = Changing::visited(false).await;
    place.close_quic().await;
    place.goes_on_over_tcp().await;
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn requests_in_0_rtt_to_a_port_that_is_closed_since_are_repeated_over_http2() {
    let mut place = Changing::visited(true).await;
    place.close_quic().await;
    place.goes_on_over_tcp().await;
}

/// Requests after the failure of the connection do not try QUIC again: a request is repeated once only.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn after_a_connection_in_0_rtt_to_a_closed_port_the_next_is_over_http2() {
    let mut place = Changing::visited(true).await;
    place.close_quic().await;
    let url = place.server.url(HttpVersion::Http3, "/file");
    place.client.open(&url, 1).await.unwrap();
    // The connection fails.
    let endpoint = place.client.endpoint(place.server.address).unwrap();
    tokio::time::timeout(LIMIT, endpoint.wait_idle())
        .await
        .unwrap();
    let report = place.fetch(1).await;
    let over_quic = report.connections.iter().filter(|c| c.http_version == "3");
    assert!(over_quic.count() <= 1, "{report:?}");
    assert_eq!(report.objects[0].http_version, "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_0_rtt_that_nobody_answers_are_repeated_over_http2() {
    let mut place = Changing::visited(true).await;
    place.close_quic().await;
    let _silent = UdpSocket::bind(place.server.address).unwrap();
    place.goes_on_over_tcp().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_in_0_rtt_that_are_answered_stay_with_http3() {
    let place = Changing::visited(true).await;
    let report = place.fetch(5).await;
    assert_eq!(report.connections.len(), 1, "{report:?}");
    assert!(
        report
            .objects
            .iter()
            .all(|object| object.http_version == "3")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn http3_is_used_where_http2_does_not_connect() {
    let root = directory_of(&[("file", b"content")]);
    let site = marline_http::server::directory(root.path(), false).unwrap();
    let server = TestServer::with(site, |config| config.protocols.http2 = false).await;
    let report = fetch(&server, true, 1).await;
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(report.connections[0].http_version, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_fallback_http3_insists() {
    let root = directory_of(&[("file", b"content")]);
    let server = without_quic(root.path()).await;
    let _silent = UdpSocket::bind(server.address).unwrap();
    let fetched = tokio::time::timeout(Duration::from_secs(1), fetch(&server, false, 1)).await;
    assert!(fetched.is_err(), "it waits for an answer: {fetched:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_closed_udp_port_is_an_error_that_says_so() {
    let root = directory_of(&[("file", b"content")]);
    let server = without_quic(root.path()).await;
    let report = tokio::time::timeout(LIMIT, fetch(&server, false, 1)).await;
    let error = report.unwrap().objects[0]
        .error
        .as_ref()
        .unwrap()
        .to_string();
    assert!(error.ends_with("its UDP port is closed"), "{error}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn the_error_about_two_closed_ports_names_both_attempts() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/", free.local_addr().unwrap());
    drop(free);
    let client = client_with(|config| config.fallback = true);
    let progress = Arc::new(Progress::default());
    let fetched = client.fetch(vec![discarded(url)], FetchOptions::default(), &progress);
    let object = fetched.await.objects.remove(0);
    let error = object.error.unwrap();
    assert!(
        error.contains("HTTP/3: the server cannot be reached: its UDP port is closed"),
        "{error}"
    );
    assert!(error.contains("; HTTP/2: Connection refused"), "{error}");
    assert_eq!(error.matches("cannot reach").count(), 1, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_certificate_is_an_error_of_either_version() {
    let root = directory_of(&[("file", b"content")]);
    let server = without_quic(root.path()).await;
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let file = root.path().join("other.pem");
    std::fs::write(&file, other.cert.pem()).unwrap();
    let client = client_with(|config| {
        config.fallback = true;
        config.trust = Trust::File(file);
    });
    let url = server.url(HttpVersion::Http3, "/file");
    let origin = marline_http::client::parse_url(&url, HttpVersion::Http3).unwrap();
    let error = client.connect(&origin.origin).await.unwrap_err();
    assert!(matches!(error, ClientError::Certificate { .. }), "{error}");
}
