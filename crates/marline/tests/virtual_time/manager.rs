//! Managed paths over links that fail, and with addresses that change.

use std::time::Duration;

use marline::{
    ClientConfig, Connection, ConnectionEvent, Endpoint, Events, ManagedConnectError,
    MultipathConfig, PathId, PathManager, PathPolicy, Runtime, ServerConfig, TransportConfig,
};
use marline_sim::identity::Identity;

use crate::setup::{DELAY, LTE, Network, WIFI, client_config, run, server_config};

pub(crate) const LEN: usize = 2_000_000;
const ONE: PathId = PathId(1);

/// A client whose paths are managed, and a server that sends `LEN` bytes on every stream.
pub(crate) struct Ends {
    pub(crate) client: Endpoint,
    server: Endpoint,
    config: ClientConfig,
    pub(crate) manager: PathManager,
}

impl Ends {
    fn new(network: &Network, rules: &[&str]) -> Self {
        Self::with(network, rules, true)
    }

    /// `is_multipath`: whether the server allows several paths.
    fn with(network: &Network, rules: &[&str], is_multipath: bool) -> Self {
        Self::serving(network, rules, server_config(transport(is_multipath)))
    }

    pub(crate) fn serving(network: &Network, rules: &[&str], config: ServerConfig) -> Self {
        let server = network.server_endpoint(config);
        let accepting = server.clone();
        let host = network.server.clone();
        network.server.run(async move {
            while let Some(connecting) = accepting.accept().await {
                host.run(async move {
                    if let Ok(connection) = connecting.await {
                        serve(connection).await;
                    }
                });
            }
        });
        let rules = rules.iter().map(|rule| rule.parse().unwrap());
        let policy = PathPolicy {
            rules: rules.collect(),
            ..PathPolicy::default()
        };
        Self {
            client: network.client_endpoint(),
            server,
            config: client_config(transport(true)),
            manager: PathManager::new(policy),
        }
    }

    pub(crate) async fn connect(&self) -> Result<Connection, ManagedConnectError> {
        let remote = self.server.local_addr();
        self.manager
            .connect(&self.client, &self.config, remote, Identity::NAME)
            .await
    }

    async fn connect_instead_of(
        &self,
        unconfirmed: &Connection,
    ) -> Result<Option<Connection>, ManagedConnectError> {
        self.manager
            .connect_instead_of(unconfirmed, &self.client, &self.config, Identity::NAME)
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

pub(crate) fn transport(is_multipath: bool) -> TransportConfig {
    TransportConfig {
        multipath: is_multipath.then(MultipathConfig::default),
        ..TransportConfig::default()
    }
}

/// Bytes that arrived before the stream ended or the connection did.
pub(crate) async fn fetch(connection: &Connection) -> usize {
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

/// Bytes received over a path.
fn received(connection: &Connection, id: PathId) -> u64 {
    let paths = connection.paths();
    let found = paths.iter().find(|stats| stats.id == id);
    found.map_or(0, |stats| stats.udp_received.bytes)
}

#[test]
fn each_rule_opens_a_path() {
    for rules in [["wifi", "lte"], ["10.1.0.1", "10.2.0.1"]] {
        run(async |network| {
            let ends = Ends::new(network, &rules);
            let ours = ends.connect().await.unwrap();
            let mut events = ours.events();
            assert_eq!(validated(&mut events).await, ONE);
            assert_eq!(fetch(&ours).await, LEN);
            for (id, local) in [(PathId::INITIAL, WIFI), (ONE, LTE)] {
                assert!(received(&ours, id) > 100_000);
                let address = ours.paths()[id.0 as usize].local.unwrap();
                assert_eq!(address.ip(), local);
            }
        });
    }
}

#[test]
fn a_backup_rule_opens_a_backup_path() {
    run(async |network| {
        let ends = Ends::new(network, &["lte,backup", "wifi"]);
        let ours = ends.connect().await.unwrap();
        assert_eq!(validated(&mut ours.events()).await, ONE);
        assert_eq!(fetch(&ours).await, LEN);
        assert!(received(&ours, ONE) < 20_000);
        assert_eq!(ours.paths()[0].local.unwrap().ip(), WIFI);
    });
}

#[test]
fn a_failed_first_link_delays_the_handshake_by_the_head_start() {
    run(async |network| {
        network.wifi.cut();
        let ends = Ends::new(network, &["wifi", "lte"]);
        let begun = network.client.now();
        let ours = ends.connect().await.unwrap();
        let took = network.client.now() - begun;
        let head_start = ends.manager.policy().head_start;
        assert!(took < head_start + 6 * DELAY, "{took:?}");
        assert_eq!(ours.local_address().ip(), LTE);
        assert_eq!(fetch(&ours).await, LEN);
        // The link is restored: after a pause, it is tried again.
        network.wifi.restore();
        let mut events = ours.events();
        let id = validated(&mut events).await;
        let paths = ours.paths();
        let stats = paths.iter().find(|stats| stats.id == id).unwrap();
        assert_eq!(stats.local.unwrap().ip(), WIFI);
    });
}

#[test]
fn a_network_that_fails_before_the_handshake_is_confirmed_is_replaced_by_another() {
    run(async |network| {
        let ends = Ends::new(network, &["wifi", "lte"]);
        let unconfirmed = ends.connect().await.unwrap();
        network.wifi.cut();
        let wait = ends.manager.confirmation_wait(&unconfirmed).unwrap();
        assert!(wait <= ends.manager.policy().head_start, "{wait:?}");
        network.client.sleep(wait).await;
        let begun = network.client.now();
        let ours = ends
            .connect_instead_of(&unconfirmed)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(ours.local_address().ip(), LTE);
        assert_eq!(fetch(&ours).await, LEN);
        // Others begin where this one found an answer.
        let next = ends.connect().await.unwrap();
        assert_eq!(next.local_address().ip(), LTE);
        assert!(network.client.now() - begun < Duration::from_secs(10));
        // A path from there works again: the first rule is the first again.
        network.wifi.restore();
        validated(&mut next.events()).await;
        // The manager learns of it as well.
        network.client.sleep(DELAY).await;
        let last = ends.connect().await.unwrap();
        assert_eq!(last.local_address().ip(), WIFI);
    });
}

#[test]
fn a_connection_that_is_confirmed_is_not_replaced() {
    run(async |network| {
        let ends = Ends::new(network, &["wifi", "lte"]);
        let ours = ends.connect().await.unwrap();
        assert!(ends.connect_instead_of(&ours).await.unwrap().is_none());
        assert_eq!(ends.manager.confirmation_wait(&ours), None);
        let next = ends.connect().await.unwrap();
        assert_eq!(next.local_address().ip(), WIFI);
    });
    run(async |network| {
        let ends = Ends::new(network, &["wifi"]);
        let only = ends.connect().await.unwrap();
        assert_eq!(ends.manager.confirmation_wait(&only), None);
    });
}

#[test]
fn connecting_without_an_address_or_an_answer_is_an_error() {
    run(async |network| {
        let ends = Ends::new(network, &["ethernet"]);
        let error = ends.connect().await.unwrap_err();
        assert!(matches!(error, ManagedConnectError::NoAddress(_)));
    });
    run(async |network| {
        network.wifi.cut();
        network.lte.cut();
        let ends = Ends::new(network, &["wifi", "lte"]);
        let error = ends.connect().await.unwrap_err();
        assert!(matches!(error, ManagedConnectError::Lost(_)), "{error}");
    });
}

#[test]
fn a_path_is_closed_and_opened_with_its_address() {
    run(async |network| {
        let ends = Ends::new(network, &["wifi", "lte"]);
        let ours = ends.connect().await.unwrap();
        let mut events = ours.events();
        assert_eq!(validated(&mut events).await, ONE);
        network.client.detach(LTE);
        let gone = network.client.now();
        assert_eq!(closed(&mut events).await, ONE);
        let poll = ends.manager.policy().poll;
        assert!(network.client.now() - gone <= poll + DELAY);
        network.client.sleep(Duration::from_secs(20)).await;
        network.client.attach(LTE);
        let back = network.client.now();
        let again = validated(&mut events).await;
        assert!(again > ONE);
        assert!(network.client.now() - back <= poll + 6 * DELAY);
        assert_eq!(fetch(&ours).await, LEN);
        assert!(received(&ours, again) > 100_000);
    });
}

#[test]
fn a_cap_limits_all_connections_together() {
    const CAP: u64 = 300_000;
    run(async |network| {
        let ends = Ends::new(network, &["wifi", "lte,cap=300kB"]);
        let ours = ends.connect().await.unwrap();
        let mut events = ours.events();
        assert_eq!(validated(&mut events).await, ONE);
        assert_eq!(fetch(&ours).await, LEN);
        assert_eq!(closed(&mut events).await, ONE);
        let spent = ends.manager.spent(1);
        // The links do not limit slow start, whose rate grows fastest.
        assert!((CAP..2 * CAP).contains(&spent), "{spent}");
        network.client.sleep(Duration::from_secs(120)).await;
        assert_eq!(ours.paths().len(), 1);
        let another = ends.connect().await.unwrap();
        assert_eq!(fetch(&another).await, LEN);
        assert_eq!(another.paths().len(), 1);
        assert_eq!(ends.manager.spent(1), spent);
        // As at the beginning of a month.
        ends.manager.policy().rules[1].spent.reset();
        network.client.sleep(Duration::from_secs(10)).await;
        assert_eq!(another.paths().len(), 2);
        assert!(ends.manager.spent(1) < CAP);
    });
}

#[test]
fn a_connection_without_a_path_below_its_cap_closes() {
    for is_multipath in [true, false] {
        run(async |network| {
            let ends = Ends::with(network, &["wifi,cap=300kB"], is_multipath);
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
fn a_server_without_multipath_gets_one_path() {
    run(async |network| {
        let ends = Ends::with(network, &["wifi", "lte"], false);
        let ours = ends.connect().await.unwrap();
        assert_eq!(fetch(&ours).await, LEN);
        network.client.sleep(Duration::from_secs(5)).await;
        assert!(!ours.is_multipath());
        assert_eq!(ours.paths().len(), 1);
    });
}

#[test]
fn a_first_path_without_a_rule_is_closed() {
    run(async |network| {
        let ends = Ends::new(network, &["lte"]);
        let connecting = ends.client.connect_with(
            ends.config.clone(),
            ends.server.local_addr(),
            Identity::NAME,
        );
        let ours = connecting.unwrap().await.unwrap();
        let mut events = ours.events();
        ends.manager.manage(&ours);
        assert_eq!(validated(&mut events).await, ONE);
        assert_eq!(closed(&mut events).await, PathId::INITIAL);
        assert_eq!(fetch(&ours).await, LEN);
    });
}

#[test]
fn a_manager_does_not_keep_connections_open() {
    run(async |network| {
        let ends = Ends::new(network, &["wifi", "lte"]);
        let ours = ends.connect().await.unwrap();
        validated(&mut ours.events()).await;
        let weak = ours.downgrade();
        assert!(weak.upgrade().is_some());
        drop(ours);
        assert!(weak.upgrade().is_none());
        ends.client.wait_idle().await;
    });
}
