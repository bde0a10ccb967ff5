//! A server that is reloaded, restarted or stopped while clients are connected.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response, StatusCode};
use marline::{QuicLbConfig, QuicLbFormat, ServerId};
use marline_http::Body;
use marline_http::client::{HttpVersion, parse_url};
use marline_http::server::{
    AccessLog, AlsoListen, Identity, ServerConfig, SharedKeys, Site, StateDirectory, directory,
};
use tempfile::TempDir;
use tower::service_fn;

use crate::common::{TestServer, VERSIONS, client, directory_of, read, until};
use crate::log::Lines;

const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn identity() -> Identity {
    Identity::self_signed(vec!["localhost".to_owned()]).unwrap()
}

#[tokio::test]
async fn a_reload_exchanges_site_log_and_certificate_and_keeps_connections() {
    let before = directory_of(&[("file", b"before")]);
    let after = directory_of(&[("file", b"after")]);
    let server = TestServer::files(before.path()).await;
    let mut visitors = Vec::new();
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        assert_eq!(visitor.get("/file", &[]).await.1, b"before", "{version:?}");
        visitors.push(visitor);
    }

    let log = Lines::default();
    let identity = identity();
    let site = directory(after.path(), false).unwrap();
    let mut config = ServerConfig::new(server.address, identity.clone(), site);
    config.access_log = Some(AccessLog::new(log.clone()));
    server.handle.reload(config).unwrap();

    for visitor in &visitors {
        assert_eq!(visitor.get("/file", &[]).await.1, b"after");
    }
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        assert_eq!(visitor.get("/file", &[]).await.1, b"after", "{version:?}");
    }
    drop(visitors);
    assert_eq!(certificate_of(server.address).await, identity.chain()[0]);
    let requests = 2 * VERSIONS.len();
    assert_eq!(log.wait(requests).await.len(), requests);
}

#[tokio::test]
async fn a_replaced_identity_is_that_of_new_connections_and_keeps_open_ones() {
    let root = directory_of(&[("file", b"content")]);
    let present = identity();
    let used = present.clone();
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.identity = Some(used);
    })
    .await;
    let mut visitors = Vec::new();
    for version in VERSIONS {
        visitors.push(server.connect(version).await);
    }
    let before = present.detached();
    let next = identity();
    present.replace(&next).unwrap();
    assert_ne!(before.chain(), next.chain());
    assert_eq!(present.chain(), next.chain());
    for visitor in &visitors {
        assert_eq!(visitor.get("/file", &[]).await.1, b"content");
    }
    assert_eq!(certificate_of(server.address).await, next.chain()[0]);
    for version in VERSIONS {
        server.connect(version).await;
    }
}

#[tokio::test]
async fn a_reload_counts_the_qlog_files_of_before() {
    let root = directory_of(&[("file", b"content")]);
    let logs = TempDir::new().unwrap();
    let site = || directory(root.path(), false).unwrap();
    let limit = |config: &mut ServerConfig| {
        config.qlog = Some(logs.path().to_owned());
        config.limits.qlog.files = 2;
    };
    let server = TestServer::with(site(), limit).await;
    for _ in 0..3 {
        let visitor = server.connect(HttpVersion::Http3).await;
        assert_eq!(visitor.get("/file", &[]).await.1, b"content");
        let mut config = ServerConfig::new(server.address, identity(), site());
        limit(&mut config);
        server.handle.reload(config).unwrap();
    }
    server.handle.shut_down();
    server.task.await.unwrap().unwrap();
    assert_eq!(std::fs::read_dir(logs.path()).unwrap().count(), 2);
}

/// The certificate that a server presents over QUIC.
async fn certificate_of(address: SocketAddr) -> rustls::pki_types::CertificateDer<'static> {
    let client = client(HttpVersion::Http3);
    let url = format!("https://{address}/");
    let origin = parse_url(&url, HttpVersion::Http3).unwrap().origin;
    let connection = client.connect(&origin).await.unwrap();
    let chain = connection.quic().unwrap().peer_certificates().unwrap();
    chain[0].clone()
}

#[tokio::test]
async fn sessions_and_0_rtt_survive_a_restart_unless_settings_change() {
    let root = directory_of(&[("file", b"content")]);
    let kept = TempDir::new().unwrap();
    // Not bound between the servers; chosen by the first one. Other tests bind no ports of the address.
    let mut address: SocketAddr = ([127, 7, 0, 1], 0).into();
    let client = client(HttpVersion::Http3);
    for (start, window, early) in [(0, 1 << 20, false), (1, 1 << 20, true), (2, 1 << 21, false)] {
        let site = directory(root.path(), false).unwrap();
        let server = TestServer::with(site, |config| {
            config.listen = address;
            let state = StateDirectory::open(kept.path(), UNIX).unwrap();
            config.state = Some(Arc::new(state));
            Arc::make_mut(&mut config.quic.transport).receive_window = Some(window);
        })
        .await;
        address = server.address;
        let url = server.url(HttpVersion::Http3, "/file");
        let target = parse_url(&url, HttpVersion::Http3).unwrap();
        let connection = client.connect(&target.origin).await.unwrap();
        let response = connection
            .get(&target.origin, &target.uri, &Default::default())
            .await
            .unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(read(response.into_body()).await, b"content");
        let quic = connection.quic().unwrap();
        quic.confirmed().await.unwrap();
        assert_eq!(quic.early_data_accepted(), early, "start {start}");
        // The session ticket precedes the response to a request that follows the handshake.
        let next = connection
            .get(&target.origin, &target.uri, &Default::default())
            .await;
        assert_eq!(read(next.unwrap().into_body()).await, b"content");
        quic.close(0, b"");
        server.handle.hurry();
        server.task.await.unwrap().unwrap();
        // The endpoint's own task closes its socket.
        until("the port is free", || UdpSocket::bind(address).is_ok()).await;
    }
}

/// A configuration of QUIC-LB with a key of these bytes.
fn quic_lb(config: u8, key: u8) -> QuicLbConfig {
    let format = QuicLbFormat::new(config, 1, 15, Some([key; 16])).unwrap();
    QuicLbConfig::new(format, ServerId::new(&[7]).unwrap(), false).unwrap()
}

#[tokio::test]
async fn a_reload_replaces_the_configuration_of_connection_ids_or_changes_nothing() {
    let root = directory_of(&[("file", b"content")]);
    let site = || directory(root.path(), false).unwrap();
    let server = TestServer::with(site(), |config| config.quic_lb = Some(quic_lb(0, 1))).await;
    let visitor = server.connect(HttpVersion::Http3).await;
    assert_eq!(visitor.get("/file", &[]).await.1, b"content");
    let reload = |next: Option<QuicLbConfig>| {
        let empty = directory_of(&[]);
        let mut config = ServerConfig::new(
            server.address,
            identity(),
            match &next {
                Some(_) => site(),
                None => directory(empty.path(), false).unwrap(),
            },
        );
        config.quic_lb = next;
        server.handle.reload(config)
    };
    let refused = reload(None).unwrap_err().to_string();
    assert!(refused.contains("[quic_lb]: only a restart"), "{refused}");
    assert_eq!(visitor.get("/file", &[]).await.1, b"content");
    let refused = reload(Some(quic_lb(0, 2))).unwrap_err().to_string();
    assert!(refused.contains("an identifier other than 0"), "{refused}");
    reload(Some(quic_lb(0, 1))).unwrap();
    reload(Some(quic_lb(1, 2))).unwrap();
    for _ in 0..3 {
        assert_eq!(visitor.get("/file", &[]).await.1, b"content");
    }
}

/// Servers that share a secret, at two addresses as on two machines.
#[tokio::test]
async fn sessions_are_resumed_at_another_server_with_the_same_secret_and_without_0_rtt() {
    let root = directory_of(&[("file", b"content")]);
    let kept = TempDir::new().unwrap();
    let secret = kept.path().join("secret");
    std::fs::write(&secret, "of all machines behind one address").unwrap();
    #[cfg(unix)]
    std::fs::set_permissions(&secret, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let mut servers = Vec::new();
    for _ in 0..2 {
        let site = directory(root.path(), false).unwrap();
        let server = TestServer::with(site, |config| {
            config.shared = Some(Arc::new(SharedKeys::read(&secret, UNIX).unwrap()));
        });
        servers.push(server.await);
    }
    let client = client(HttpVersion::Http3);
    for (server, is_resumed) in servers.iter().zip([false, true]) {
        let url = server.url(HttpVersion::Http3, "/file");
        let target = parse_url(&url, HttpVersion::Http3).unwrap();
        let connection = client.connect(&target.origin).await.unwrap();
        let quic = connection.quic().unwrap();
        quic.confirmed().await.unwrap();
        assert_eq!(quic.is_resumed(), is_resumed);
        assert!(!quic.early_data_accepted());
        // The session ticket precedes the response to a request that follows the handshake.
        let headers = Default::default();
        let response = connection.get(&target.origin, &target.uri, &headers).await;
        assert_eq!(read(response.unwrap().into_body()).await, b"content");
        quic.close(0, b"");
    }
}

#[tokio::test]
async fn a_second_signal_does_not_wait_for_requests() {
    let arrived = Arc::new(AtomicUsize::new(0));
    let arriving = Arc::clone(&arrived);
    let site = Site::new(service_fn(move |_: Request<Body>| {
        arriving.fetch_add(1, Relaxed);
        std::future::pending::<Result<Response<Body>, Infallible>>()
    }));
    let server = TestServer::site(site).await;
    let mut waiting = Vec::new();
    for version in VERSIONS {
        let visitor = server.connect(version).await;
        waiting.push(tokio::spawn(async move {
            drop(visitor.try_send(http::Method::GET, "/slow", &[]).await);
        }));
    }
    let has_all = || arrived.load(Relaxed) == VERSIONS.len();
    until("requests are in progress", has_all).await;
    server.handle.shut_down();
    server.handle.hurry();
    let stopped = tokio::time::timeout(Duration::from_secs(60), server.task);
    stopped.await.expect("it does not wait").unwrap().unwrap();
}

#[tokio::test]
async fn a_server_listens_on_several_addresses_with_one_port() {
    let loopback = IpAddr::V6(Ipv6Addr::LOCALHOST);
    let has_ipv6 = UdpSocket::bind(SocketAddr::new(loopback, 0)).is_ok();
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        // No host has the second.
        config.also_listen = [loopback, "192.0.2.1".parse().unwrap()]
            .map(AlsoListen::IfPresent)
            .to_vec();
    })
    .await;
    assert_eq!(server.addresses.len(), 1 + usize::from(has_ipv6));
    for address in &server.addresses {
        assert_eq!(address.port(), server.address.port());
        for version in VERSIONS {
            let url = server.url(version, "/file");
            let url = url.replace(&server.address.to_string(), &address.to_string());
            let target = parse_url(&url, version).unwrap();
            let client = client(version);
            let connection = client.connect(&target.origin).await.unwrap();
            let response = connection
                .get(&target.origin, &target.uri, &Default::default())
                .await
                .unwrap();
            assert_eq!(read(response.into_body()).await, b"content", "{url}");
        }
    }
}
