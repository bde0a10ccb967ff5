//! Several paths over several links.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use marline::{
    AbandonPathError, Connection, ConnectionEvent, Endpoint, EndpointConfig, ErrorCode, Events,
    Instant, MultipathConfig, OpenPathError, PathId, PathStatus, Runtime, TransportConfig, proto,
};

use crate::world::World;
use crate::{DELAY, configs, endpoint};

const LEN: usize = 2_000_000;
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const ONE: PathId = PathId(1);

/// A client with two links and a server with one.
struct Ends {
    world: World,
    client: Endpoint,
    /// Dropped, it would close the connection.
    _server: Endpoint,
    ours: Connection,
    theirs: Connection,
}

impl Ends {
    /// A connection whose client wants so many paths.
    async fn connect(world: &World, paths: Option<u32>) -> Self {
        let (mut server_config, mut client_config) = configs();
        server_config.transport = transport(Some(4));
        client_config.transport = transport(paths);
        let server = endpoint(world, 1, Some(server_config));
        let socket = world.bind_all(&[FIRST, SECOND], 4433);
        let config = EndpointConfig::from_seed([2; 32]);
        let client = Endpoint::new(config, None, socket, Arc::new(world.clone())).unwrap();
        client.set_default_client_config(client_config);
        let connecting = client.connect(server.local_addr(), "localhost").unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (ours, theirs) = tokio::join!(connecting, accepting);
        Self {
            world: world.clone(),
            client,
            _server: server,
            ours: ours.unwrap(),
            theirs,
        }
    }

    async fn open(&self, local: Ipv4Addr) -> Result<PathId, OpenPathError> {
        self.ours.open_path(local.into(), None).await
    }

    /// Sends `LEN` bytes there and back; `half` happens when half of them are back.
    async fn exchange(&self, half: impl FnOnce()) {
        let theirs = self.theirs.clone();
        self.world.spawn(Box::pin(async move {
            let (mut send, mut recv) = theirs.accept_bi().await.unwrap();
            while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
                send.write_chunk(chunk).await.unwrap();
            }
            send.finish().unwrap();
            send.stopped().await.unwrap();
        }));
        let (mut send, mut recv) = self.ours.open_bi().await.unwrap();
        self.world.spawn(Box::pin(async move {
            send.write_chunk(vec![5; LEN].into()).await.unwrap();
            send.finish().unwrap();
            send.stopped().await.unwrap();
        }));
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

fn transport(paths: Option<u32>) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        grease: false,
        multipath: paths.map(|max_paths| MultipathConfig {
            max_paths,
            ..MultipathConfig::default()
        }),
        ..TransportConfig::default()
    })
}

/// Bytes that an end has sent on a path.
fn sent(connection: &Connection, path: PathId) -> u64 {
    let paths = connection.paths();
    let found = paths.iter().find(|stats| stats.id == path);
    found.map_or(0, |stats| stats.udp_sent.bytes)
}

/// Which path is closed next, and why.
async fn closed(events: &mut Events) -> (PathId, ErrorCode) {
    loop {
        if let ConnectionEvent::PathClosed { id, error } = events.next().await.unwrap() {
            return (id, error);
        }
    }
}

/// A transfer over two links, of which `dead` is cut halfway; says when it was over.
fn transfer(dead: Ipv4Addr, path: PathId) -> Instant {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::connect(&world, Some(4)).await;
        let mut events = [ends.ours.events(), ends.theirs.events()];
        assert!(ends.ours.is_multipath() && ends.theirs.is_multipath());
        assert_eq!(ends.open(SECOND).await.unwrap(), ONE);
        let clock = world.clone();
        ends.exchange(|| {
            for connection in [&ends.ours, &ends.theirs] {
                for path in [PathId::INITIAL, ONE] {
                    assert!(sent(connection, path) > 100_000);
                }
            }
            clock.cut(dead);
        })
        .await;
        let over = world.now();
        let why = ErrorCode::APPLICATION_ABANDON_PATH;
        ends.ours.abandon_path(path, why).unwrap();
        for events in &mut events {
            assert_eq!(closed(events).await, (path, why));
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
    for (dead, path) in [(FIRST, PathId::INITIAL), (SECOND, ONE)] {
        let over = transfer(dead, path);
        assert!(over - Instant::EPOCH < Duration::from_secs(10), "{over:?}");
        assert_eq!(transfer(dead, path), over);
    }
}

#[test]
fn a_backup_waits_until_it_is_needed() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::connect(&world, Some(4)).await;
        let mut events = ends.theirs.events();
        let id = ends.open(SECOND).await.unwrap();
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
        let (clock, ours, theirs) = (world.clone(), ends.ours.clone(), ends.theirs.clone());
        ends.exchange(|| {
            assert!(sent(&ours, id) < 20_000 && sent(&theirs, id) < 20_000);
            clock.cut(FIRST);
        })
        .await;
        assert!(sent(&ends.theirs, id) > 100_000);
    });
}

#[test]
fn a_path_without_answers_is_given_up() {
    let world = World::new(DELAY);
    world.cut(SECOND);
    world.run(async {
        let ends = Ends::connect(&world, Some(4)).await;
        let failed = ends.open(SECOND).await.unwrap_err();
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
fn a_path_that_the_connection_ends_before_fails() {
    let world = World::new(DELAY);
    world.cut(SECOND);
    world.run(async {
        let ends = Ends::connect(&world, Some(4)).await;
        let closing = async {
            let mut events = ends.ours.events();
            while !matches!(events.next().await, Some(ConnectionEvent::PathOpened(_))) {}
            ends.ours.close(0, b"");
        };
        let (opened, ()) = tokio::join!(ends.open(SECOND), closing);
        assert!(matches!(opened, Err(OpenPathError::ConnectionLost(_))));
        let again = ends.open(SECOND).await;
        assert!(matches!(again, Err(OpenPathError::ConnectionLost(_))));
    });
}

#[test]
fn refusals_say_why() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::connect(&world, None).await;
        assert!(!ends.ours.is_multipath());
        let refused = ends.open(SECOND).await;
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
        let elsewhere = world.bind((FIRST, 4434).into()).unwrap();
        ends.client.rebind_to(elsewhere).unwrap();
        let refused = ends.open(SECOND).await.unwrap_err();
        assert!(matches!(refused, OpenPathError::BoundElsewhere { .. }));
        assert_eq!(
            refused.to_string(),
            "the endpoint is bound to 10.0.0.2 and cannot send from 10.0.1.2; \
             bind it to 0.0.0.0 or [::]"
        );
    });
}
