//! Paths that a policy asks for, over links that come and go.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use marline::{
    ClientConfig, Connection, ConnectionEvent, Endpoint, EndpointConfig, Events,
    ManagedConnectError, MultipathConfig, PathId, PathManager, PathPolicy, Runtime,
    TransportConfig,
};

use crate::world::World;
use crate::{DELAY, configs, endpoint};

const LEN: usize = 2_000_000;
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const ONE: PathId = PathId(1);

/// A client with two links whose paths are managed, and a server with one that sends `LEN` bytes on every
/// stream.
struct Ends {
    world: World,
    client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    manager: PathManager,
}

impl Ends {
    fn new(world: &World, rules: &[&str]) -> Self {
        Self::with(world, rules, true)
    }

    fn with(world: &World, rules: &[&str], is_multipath: bool) -> Self {
        let (mut server_config, mut config) = configs();
        server_config.transport = transport(is_multipath);
        config.transport = transport(true);
        let server = endpoint(world, 1, Some(server_config));
        let accepting = server.clone();
        let spawner = world.clone();
        world.spawn(Box::pin(async move {
            while let Some(connecting) = accepting.accept().await {
                spawner.spawn(Box::pin(async move {
                    if let Ok(connection) = connecting.await {
                        serve(connection).await;
                    }
                }));
            }
        }));
        let socket = world.bind_all(&[FIRST, SECOND], 4433);
        let seed = EndpointConfig::from_seed([2; 32]);
        let client = Endpoint::new(seed, None, socket, Arc::new(world.clone())).unwrap();
        let rules = rules.iter().map(|rule| rule.parse().unwrap());
        let policy = PathPolicy {
            rules: rules.collect(),
            ..PathPolicy::default()
        };
        Self {
            world: world.clone(),
            client,
            server,
            config,
            manager: PathManager::new(policy),
        }
    }

    async fn connect(&self) -> Result<Connection, ManagedConnectError> {
        let remote = self.server.local_addr();
        self.manager
            .connect(&self.client, &self.config, remote, "localhost")
            .await
    }
}

async fn serve(connection: Connection) {
    while let Ok((mut send, _recv)) = connection.accept_bi().await {
        if send.write_chunk(vec![5; LEN].into()).await.is_ok() {
            send.finish().unwrap();
            send.stopped().await.ok();
        }
    }
}

fn transport(is_multipath: bool) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        grease: false,
        multipath: is_multipath.then(MultipathConfig::default),
        ..TransportConfig::default()
    })
}

/// Bytes that arrived before the stream ended or the connection did.
async fn fetch(connection: &Connection) -> usize {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.finish().unwrap();
    let mut len = 0;
    while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
        len += chunk.len();
    }
    len
}

async fn validated(events: &mut Events) -> PathId {
    loop {
        match events.next().await.unwrap() {
            ConnectionEvent::PathValidated(id) => return id,
            _ => continue,
        }
    }
}

async fn closed(events: &mut Events) -> PathId {
    loop {
        match events.next().await.unwrap() {
            ConnectionEvent::PathClosed { id, .. } => return id,
            _ => continue,
        }
    }
}

/// Bytes that came over a path.
fn received(connection: &Connection, id: PathId) -> u64 {
    let paths = connection.paths();
    let found = paths.iter().find(|stats| stats.id == id);
    found.map_or(0, |stats| stats.udp_received.bytes)
}

#[test]
fn every_rule_has_its_path() {
    for rules in [["link0", "link1"], ["10.0.0.2", "10.0.1.2"]] {
        let world = World::new(DELAY);
        world.run(async {
            let ends = Ends::new(&world, &rules);
            let ours = ends.connect().await.unwrap();
            let mut events = ours.events();
            assert_eq!(validated(&mut events).await, ONE);
            assert_eq!(fetch(&ours).await, LEN);
            for (id, local) in [(PathId::INITIAL, FIRST), (ONE, SECOND)] {
                assert!(received(&ours, id) > 100_000);
                let address = ours.paths()[id.0 as usize].local.unwrap();
                assert_eq!(address.ip(), local);
            }
        });
    }
}

#[test]
fn a_backup_is_a_backup() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link1,backup", "link0"]);
        let ours = ends.connect().await.unwrap();
        assert_eq!(validated(&mut ours.events()).await, ONE);
        assert_eq!(fetch(&ours).await, LEN);
        assert!(received(&ours, ONE) < 20_000);
        assert_eq!(ours.paths()[0].local.unwrap().ip(), FIRST);
    });
}

#[test]
fn a_dead_first_link_costs_a_head_start() {
    let world = World::new(DELAY);
    world.cut(FIRST);
    world.run(async {
        let ends = Ends::new(&world, &["link0", "link1"]);
        let begun = world.now();
        let ours = ends.connect().await.unwrap();
        let took = world.now() - begun;
        let head_start = ends.manager.policy().head_start;
        assert!(took < head_start + 6 * DELAY, "{took:?}");
        assert_eq!(ours.local_address().ip(), SECOND);
        assert_eq!(fetch(&ours).await, LEN);
        // The link is mended: after a pause, it is tried again.
        ends.world.join(FIRST);
        let mut events = ours.events();
        let id = validated(&mut events).await;
        let paths = ours.paths();
        let stats = paths.iter().find(|stats| stats.id == id).unwrap();
        assert_eq!(stats.local.unwrap().ip(), FIRST);
    });
}

#[test]
fn where_nothing_answers_it_says_so() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link7"]);
        let error = ends.connect().await.unwrap_err();
        assert!(matches!(error, ManagedConnectError::NoAddress(_)));
        world.cut(FIRST);
        world.cut(SECOND);
        let ends = Ends::new(&world, &["link0", "link1"]);
        let error = ends.connect().await.unwrap_err();
        assert!(matches!(error, ManagedConnectError::Lost(_)), "{error}");
    });
}

#[test]
fn a_path_comes_and_goes_with_its_address() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link0", "link1"]);
        let ours = ends.connect().await.unwrap();
        let mut events = ours.events();
        assert_eq!(validated(&mut events).await, ONE);
        world.leave(SECOND);
        let gone = world.now();
        assert_eq!(closed(&mut events).await, ONE);
        let poll = ends.manager.policy().poll;
        assert!(world.now() - gone <= poll + DELAY);
        world.sleep(Duration::from_secs(20)).await;
        world.join(SECOND);
        let back = world.now();
        let again = validated(&mut events).await;
        assert!(again > ONE);
        assert!(world.now() - back <= poll + 6 * DELAY);
        assert_eq!(fetch(&ours).await, LEN);
        assert!(received(&ours, again) > 100_000);
    });
}

#[test]
fn a_cap_holds_over_all_connections() {
    const CAP: u64 = 300_000;
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link0", "link1,cap=300kB"]);
        let ours = ends.connect().await.unwrap();
        let mut events = ours.events();
        assert_eq!(validated(&mut events).await, ONE);
        assert_eq!(fetch(&ours).await, LEN);
        assert_eq!(closed(&mut events).await, ONE);
        let spent = ends.manager.spent(1);
        // These links are as fast as slow start, and that is at its steepest.
        assert!((CAP..2 * CAP).contains(&spent), "{spent}");
        world.sleep(Duration::from_secs(120)).await;
        assert_eq!(ours.paths().len(), 1);
        let another = ends.connect().await.unwrap();
        assert_eq!(fetch(&another).await, LEN);
        assert_eq!(another.paths().len(), 1);
        assert_eq!(ends.manager.spent(1), spent);
    });
}

#[test]
fn a_connection_ends_rather_than_its_cap_is_exceeded() {
    for is_multipath in [true, false] {
        let world = World::new(DELAY);
        world.run(async {
            let ends = Ends::with(&world, &["link0,cap=300kB"], is_multipath);
            let ours = ends.connect().await.unwrap();
            let len = fetch(&ours).await;
            assert!(len < 600_000, "{len}");
            ours.closed().await;
            assert_eq!(ends.manager.spent_rules().count(), 1);
            let error = ends.connect().await.unwrap_err();
            assert!(matches!(error, ManagedConnectError::NoAddress(_)));
        });
    }
}

#[test]
fn a_server_of_one_path_gets_one() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::with(&world, &["link0", "link1"], false);
        let ours = ends.connect().await.unwrap();
        assert_eq!(fetch(&ours).await, LEN);
        world.sleep(Duration::from_secs(5)).await;
        assert!(!ours.is_multipath());
        assert_eq!(ours.paths().len(), 1);
    });
}

#[test]
fn a_first_path_that_nobody_named_is_left() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link1"]);
        let connecting =
            ends.client
                .connect_with(ends.config.clone(), ends.server.local_addr(), "localhost");
        let ours = connecting.unwrap().await.unwrap();
        let mut events = ours.events();
        ends.manager.manage(&ours);
        assert_eq!(validated(&mut events).await, ONE);
        assert_eq!(closed(&mut events).await, PathId::INITIAL);
        assert_eq!(fetch(&ours).await, LEN);
    });
}

#[test]
fn a_manager_keeps_no_connection_open() {
    let world = World::new(DELAY);
    world.run(async {
        let ends = Ends::new(&world, &["link0", "link1"]);
        let ours = ends.connect().await.unwrap();
        validated(&mut ours.events()).await;
        let weak = ours.downgrade();
        assert!(weak.upgrade().is_some());
        drop(ours);
        assert!(weak.upgrade().is_none());
        ends.client.wait_idle().await;
    });
}
