//! Multipath TCP of the kernel.

use marline_http::client::{ClientError, FetchOptions, HttpVersion};
use marline_http::server::directory;
use marline_http::tcp::{SystemSockets, TcpProtocol, TcpSockets};

use crate::common::{TestServer, client_with, directory_of, discarded};

/// Whether this kernel has Multipath TCP; otherwise the test is skipped.
fn has_multipath_tcp(server: &TestServer) -> bool {
    let socket = SystemSockets.socket(server.address, TcpProtocol::Multipath);
    if let Err(error) = &socket {
        println!("skipped: this kernel has no Multipath TCP: {error}");
    }
    socket.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_use_multipath_tcp_if_asked() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::files(root.path()).await;
    if !has_multipath_tcp(&server) {
        return;
    }
    for version in [HttpVersion::Http11, HttpVersion::Http2] {
        for (protocol, subflows) in [(TcpProtocol::Multipath, Some(1)), (TcpProtocol::Tcp, None)] {
            let client = client_with(|config| {
                config.version = version;
                config.tcp_protocol = protocol;
            });
            let target = discarded(server.url(version, "/file"));
            let report = client
                .fetch(vec![target], FetchOptions::default(), &Default::default())
                .await;
            assert!(report.is_complete(), "{report:?}");
            assert_eq!(report.connections[0].mptcp_subflows, subflows);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_multipath_tcp_is_an_error_where_it_is_asked_for() {
    let root = directory_of(&[("file", b"content")]);
    let server = TestServer::with(directory(root.path(), false).unwrap(), |config| {
        config.multipath_tcp = false;
    })
    .await;
    if !has_multipath_tcp(&server) {
        return;
    }
    let client = client_with(|config| {
        config.version = HttpVersion::Http2;
        config.tcp_protocol = TcpProtocol::Multipath;
    });
    let target = discarded(server.url(HttpVersion::Http2, "/file"));
    let report = client
        .fetch(vec![target], FetchOptions::default(), &Default::default())
        .await;
    let failure = report.objects[0].failure.as_deref();
    assert!(
        matches!(failure, Some(ClientError::NoMultipathTcp { .. })),
        "{report:?}"
    );
}
