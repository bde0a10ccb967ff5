//! Several paths over several links.

use std::net::Ipv4Addr;
use std::time::Duration;

use marline::{
    AbandonPathError, Connection, ConnectionEvent, Endpoint, ErrorCode, Events, Instant,
    MultipathConfig, OpenPathError, PathId, PathStatus, Runtime, TransportConfig, proto,
};
use marline_sim::identity::Identity;

use crate::setup::{LTE, Network, WIFI, client_config, run, server_config};

const LEN: usize = 2_000_000;
const ONE: PathId = PathId(1);

/// A connection that begins over `wifi`.
struct Ends<'n> {
    network: &'n Network,
    client: Endpoint,
    /// It would close the connection when dropped.
    _server: Endpoint,
    ours: Connection,
    theirs: Connection,
}

impl<'n> Ends<'n> {
    /// Connects; the client allows `paths` paths.
    async fn connect(network: &'n Network, paths: Option<u32>) -> Self {
        let server = network.server_endpoint(server_config(transport(Some(4))));
        let client = network.client_endpoint();
        client.set_default_client_config(client_config(transport(paths)));
        let connecting = client.connect(server.local_addr(), Identity::NAME).unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (ours, theirs) = tokio::join!(connecting, accepting);
        Self {
            network,
            client,
            _server: server,
            ours: ours.unwrap(),
            theirs,
        }
    }

    async fn open(&self, local: Ipv4Addr) -> Result<PathId, OpenPathError> {
        self.ours.open_path(local.into(), None).await
    }

    /// Sends `LEN` bytes to the server and back; calls `half` when half of them have returned.
    async fn exchange(&self, half: impl FnOnce()) {
        let theirs = self.theirs.clone();
        self.network.server.run(async move {
            let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
            while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
                send.write_chunk(chunk).await.unwrap();
            }
            send.finish().unwrap();
            send.stopped().await.unwrap();
        });
        let (mut send, mut recv) = self.ours.open_bi().await.unwrap();
        self.network.client.run(async move {
            send.write_chunk(vec![5; LEN].into()).await.unwrap();
            send.finish().unwrap();
            send.stopped().await.unwrap();
        });
        let (mut half, mut len) = (Some(half), 0);
        while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
            len += chunk.len();
            if len >= LEN / 2
                && let Some(half) = half.take()
            {
                half();
            }
        }
        assert_eq!(len, LEN);
    }
}

fn transport(paths: Option<u32>) -> TransportConfig {
    TransportConfig {
        multipath: paths.map(|max_paths| MultipathConfig {
            max_paths,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    }
}

/// Bytes that an end has sent on a path.
fn sent(connection: &Connection, path: PathId) -> u64 {
    let paths = connection.paths();
    let found = paths.iter().find(|stats| stats.id == path);
    found.map_or(0, |stats| stats.udp_sent.bytes)
}

/// Waits until a path is closed, which must be `path` with the code `why`.
async fn expect_closed(events: &mut Events, path: PathId, why: ErrorCode) {
    loop {
        if let ConnectionEvent::PathClosed { id, error } = events.next().await.unwrap() {
            return assert_eq!((id, error), (path, why));
        }
    }
}

/// A transfer over two links, of which that of the address `cut` fails halfway. Returns the time of its end.
fn transfer(cut: Ipv4Addr, path: PathId) -> Instant {
    run(async |network| {
        let ends = Ends::connect(network, Some(4)).await;
        let mut events = [ends.ours.events(), ends.theirs.events()];
        assert!(ends.ours.is_multipath() && ends.theirs.is_multipath());
        assert_eq!(ends.open(LTE).await.unwrap(), ONE);
        ends.exchange(|| {
            for connection in [&ends.ours, &ends.theirs] {
                for path in [PathId::INITIAL, ONE] {
                    assert!(sent(connection, path) > 100_000);
                }
            }
            network.link(cut).cut();
        })
        .await;
        let over = network.client.now();
        let why = ErrorCode::APPLICATION_ABANDON_PATH;
        ends.ours.abandon_path(path, why).unwrap();
        for events in &mut events {
            expect_closed(events, path, why).await;
        }
        assert_eq!(
            ends.ours.abandon_path(path, why),
            Err(AbandonPathError::NoSuchPath)
        );
        ends.exchange(|| {}).await;
        over
    })
}

#[test]
fn a_transfer_outlives_the_link_of_either_path() {
    for (cut, path) in [(WIFI, PathId::INITIAL), (LTE, ONE)] {
        let over = transfer(cut, path);
        assert!(over - Instant::EPOCH < Duration::from_secs(10), "{over:?}");
        assert_eq!(transfer(cut, path), over);
    }
}

#[test]
fn a_backup_path_carries_data_only_after_the_other_fails() {
    run(async |network| {
        let ends = Ends::connect(network, Some(4)).await;
        let mut events = ends.theirs.events();
        let id = ends.open(LTE).await.unwrap();
        ends.ours.set_path_status(id, PathStatus::Backup);
        loop {
            match events.next().await.unwrap() {
                ConnectionEvent::PathStatus { id: of, status } => {
                    assert_eq!((of, status), (id, PathStatus::Backup));
                    break;
                }
                _ => continue,
            }
        }
        ends.exchange(|| {
            assert!(sent(&ends.ours, id) < 20_000 && sent(&ends.theirs, id) < 20_000);
            network.wifi.cut();
        })
        .await;
        assert!(sent(&ends.theirs, id) > 100_000);
    });
}

#[test]
fn opening_a_path_over_a_failed_link_fails() {
    run(async |network| {
        network.lte.cut();
        let ends = Ends::connect(network, Some(4)).await;
        let failed = ends.open(LTE).await.unwrap_err();
        assert!(
            matches!(
                failed,
                OpenPathError::Failed(ErrorCode::PATH_UNSTABLE_OR_POOR)
            ),
            "{failed}"
        );
        ends.exchange(|| {}).await;
    });
}

#[test]
fn opening_a_path_fails_when_the_connection_closes() {
    run(async |network| {
        network.lte.cut();
        let ends = Ends::connect(network, Some(4)).await;
        let closing = async {
            let mut events = ends.ours.events();
            while !matches!(events.next().await, Some(ConnectionEvent::PathOpened(_))) {}
            ends.ours.close(0, b"");
        };
        let (opened, ()) = tokio::join!(ends.open(LTE), closing);
        assert!(matches!(opened, Err(OpenPathError::ConnectionLost(_))));
        let again = ends.open(LTE).await;
        assert!(matches!(again, Err(OpenPathError::ConnectionLost(_))));
    });
}

#[test]
fn refused_paths_name_the_reason() {
    run(async |network| {
        let ends = Ends::connect(network, None).await;
        assert!(!ends.ours.is_multipath());
        let refused = ends.open(LTE).await;
        assert!(matches!(
            refused,
            Err(OpenPathError::Refused(proto::OpenPathError::NotNegotiated))
        ));
        let other_family = ends
            .ours
            .open_path(std::net::Ipv6Addr::LOCALHOST.into(), None);
        assert!(matches!(
            other_family.await,
            Err(OpenPathError::FamiliesDiffer { .. })
        ));
        let elsewhere = network.client.bind((WIFI, 4434).into()).unwrap();
        ends.client.rebind_to(elsewhere).unwrap();
        let refused = ends.open(LTE).await.unwrap_err();
        assert!(matches!(refused, OpenPathError::BoundElsewhere { .. }));
        assert_eq!(
            refused.to_string(),
            "the endpoint is bound to 10.1.0.1 and cannot send from 10.2.0.1; \
             bind it to 0.0.0.0 or [::]"
        );
    });
}
