use std::time::Duration;

use futures_util::FutureExt;
use marline_sim::{Host, SimBuilder};

use super::*;
use crate::limits;

const LIMITS: ConnectionLimits = ConnectionLimits {
    total: 100,
    per_address: 3,
    per_prefix: 5,
};

/// Connections in virtual time.
struct Clients {
    host: Host,
    runtime: RuntimeHandle,
    admission: Admission,
}

impl Clients {
    fn connect(&self, address: [u8; 4]) -> Option<Admitted> {
        self.connect_from(Peer::Client(address.into()))
    }

    fn connect_from(&self, peer: Peer) -> Option<Admitted> {
        let progress = Arc::new(Progress::new(&self.runtime, limits::MIN_PROGRESS_BYTES));
        self.admission.admit(peer, &progress)
    }

    async fn wait(&self, duration: Duration) {
        self.host.sleep(duration).await;
    }
}

fn run(limits: ConnectionLimits, test: impl AsyncFnOnce(Clients)) {
    run_on_host(async |host, runtime| {
        let clients = Clients {
            admission: Admission::new(limits, &runtime),
            runtime,
            host,
        };
        test(clients).await;
    });
}

/// Runs in virtual time.
pub(super) fn run_on_host(test: impl AsyncFnOnce(Host, RuntimeHandle)) {
    let mut sim = SimBuilder::new(1)
        .link("link", ["client", "server"], "")
        .build()
        .unwrap();
    let host = sim.host("server").unwrap();
    let runtime = RuntimeHandle::new(Some(Arc::new(host.clone()))).unwrap();
    sim.run(test(host, runtime), Duration::from_secs(100_000))
        .unwrap();
}

#[test]
fn a_trusted_proxy_has_no_limit_of_its_own() {
    run(LIMITS, async |clients| {
        let proxy = Peer::Proxy([192, 0, 2, 1].into());
        let open: Vec<_> = (0..20).map(|_| clients.connect_from(proxy)).collect();
        let mut evicted = open
            .iter()
            .flatten()
            .map(|one| one.evicted().now_or_never());
        assert_eq!(open.iter().flatten().count(), 20);
        assert!(evicted.all(|evicted| evicted.is_none()));
    });
}

#[test]
fn an_address_has_a_limit_and_so_has_its_network() {
    run(LIMITS, async |clients| {
        let mut open = Vec::new();
        for last in [1, 1, 1, 2, 2] {
            open.push(clients.connect([10, 0, 0, last]).unwrap());
        }
        assert!(clients.connect([10, 0, 0, 1]).is_none());
        assert!(clients.connect([10, 0, 0, 2]).is_none());
        assert!(clients.connect([10, 0, 1, 1]).is_some());
        open.pop();
        assert!(clients.connect([10, 0, 0, 3]).is_some());
    });
}

#[test]
fn the_longest_idle_connection_makes_room() {
    run(LIMITS, async |clients| {
        let first = clients.connect([10, 0, 0, 1]).unwrap();
        clients.wait(limits::UNUSED_BEFORE_EVICTION / 2).await;
        let second = clients.connect([10, 0, 0, 1]).unwrap();
        let busy = Arc::new(Progress::new(&clients.runtime, limits::MIN_PROGRESS_BYTES));
        busy.on_request();
        let third = clients
            .admission
            .admit(Peer::Client([10, 0, 0, 1].into()), &busy)
            .unwrap();
        assert!(clients.connect([10, 0, 0, 1]).is_none(), "none is idle");
        clients.wait(limits::UNUSED_BEFORE_EVICTION).await;
        let fourth = clients.connect([10, 0, 0, 1]).unwrap();
        assert!(first.evicted().now_or_never().is_some());
        let fifth = clients.connect([10, 0, 0, 1]).unwrap();
        assert!(second.evicted().now_or_never().is_some());
        assert!(clients.connect([10, 0, 0, 1]).is_none());
        clients.wait(limits::STALLED_BEFORE_EVICTION).await;
        drop((fourth, fifth));
        let _more = [(); 2].map(|()| clients.connect([10, 0, 0, 1]).unwrap());
        assert!(clients.connect([10, 0, 0, 1]).is_some(), "a stalled one");
        assert!(third.evicted().now_or_never().is_some());
    });
}

#[test]
fn one_network_cannot_use_up_all() {
    let limits = ConnectionLimits {
        total: 8,
        per_address: 100,
        per_prefix: 100,
    };
    run(limits, async |clients| {
        let greedy: Vec<_> = (0..8)
            .filter_map(|_| clients.connect([10, 0, 0, 1]))
            .collect();
        assert_eq!(greedy.len(), 4);
        let other = clients.connect([10, 0, 1, 1]);
        assert!(other.is_some());
    });
}

#[test]
fn several_networks_cannot_use_up_all() {
    let limits = ConnectionLimits {
        total: 8,
        per_address: 100,
        per_prefix: 100,
    };
    run(limits, async |clients| {
        let mut greedy = Vec::new();
        for network in 1..=4 {
            while let Some(connection) = clients.connect([10, 0, network, 1]) {
                greedy.push(connection);
            }
        }
        assert_eq!(greedy.len(), 8);
        assert!(clients.connect([10, 0, 9, 1]).is_none(), "none is idle");
        clients.wait(limits::UNUSED_BEFORE_EVICTION).await;
        let _others: Vec<_> = (10..13)
            .map(|network| clients.connect([10, 0, network, 1]).unwrap())
            .collect();
        let evicted = greedy
            .iter()
            .filter(|open| open.evicted().now_or_never().is_some());
        assert_eq!(evicted.count(), 3);
    });
}

#[test]
fn a_network_that_has_fewer_than_it_is_entitled_to_gets_places_of_others() {
    let limits = ConnectionLimits {
        total: 20,
        per_address: 100,
        per_prefix: 100,
    };
    run(limits, async |clients| {
        let mut greedy = Vec::new();
        for network in 1..=3 {
            while let Some(connection) = clients.connect([10, 0, network, 1]) {
                greedy.push(connection);
            }
        }
        assert_eq!(greedy.len(), 20);
        clients.wait(limits::UNUSED_BEFORE_EVICTION).await;
        // Four networks: one part in five for each.
        let open: Vec<_> = (0..10)
            .map_while(|_| clients.connect([10, 0, 9, 1]))
            .collect();
        assert_eq!(open.len(), 4);
    });
}

#[test]
fn the_network_that_has_the_most_makes_room_for_a_connection_that_is_not_over_tcp() {
    run(LIMITS, async |clients| {
        let crowd = [1, 1, 2].map(|network| clients.connect([10, 0, network, 1]).unwrap());
        let newcomer = [10, 0, 9, 1].into();
        assert!(!clients.admission.evict_idle_for(newcomer), "none is idle");
        clients.wait(limits::UNUSED_BEFORE_EVICTION).await;
        assert!(clients.admission.evict_idle_for(newcomer));
        let evicted = |open: &Admitted| open.evicted().now_or_never().is_some();
        assert!(evicted(&crowd[0]) || evicted(&crowd[1]));
        assert_eq!(clients.admission.open(), 2);
        assert!(!clients.admission.evict_idle_for(newcomer), "one each");
        assert!(clients.admission.evict_idle_for([10, 0, 2, 9].into()));
        assert!(evicted(&crowd[2]));
    });
}
