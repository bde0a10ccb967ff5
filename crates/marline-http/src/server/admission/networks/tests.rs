use std::time::Duration;

use proptest::prelude::*;

use super::super::tests::run_on_host;
use super::*;
use crate::limits;
use crate::runtime::RuntimeHandle;

fn network(number: u8) -> Prefix {
    Prefix::of_network([10, 0, number, 1].into())
}

fn host(network: u8, number: u8) -> Prefix {
    Prefix::of_host([10, 0, network, number].into())
}

/// An event of one of several connections or networks.
#[derive(Clone, Copy, Debug)]
enum Act {
    Open { network: u8, host: u8 },
    Close(usize),
    Request(usize),
    Respond(usize),
    Wait(Duration),
    EvictOf { network: u8, host: Option<u8> },
    EvictOfMoreThan(usize),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (0..5_u8, 0..3_u8).prop_map(|(network, host)| Act::Open { network, host }),
        1 => (0..50_usize).prop_map(Act::Close),
        2 => (0..50_usize).prop_map(Act::Request),
        2 => (0..50_usize).prop_map(Act::Respond),
        2 => (0..25_000_u64).prop_map(|ms| Act::Wait(Duration::from_millis(ms))),
        2 => (0..5_u8, proptest::option::of(0..3_u8))
            .prop_map(|(network, host)| Act::EvictOf { network, host }),
        2 => (0..4_usize).prop_map(Act::EvictOfMoreThan),
    ];
    proptest::collection::vec(act, 0..150)
}

/// A connection as a scan of all sees it.
#[derive(Clone, Debug)]
struct Known {
    id: u64,
    network: u8,
    host: u8,
    progress: Arc<Progress>,
    requests: usize,
}

/// All connections, and the answers of a scan.
struct Model {
    runtime: RuntimeHandle,
    networks: Networks,
    known: Vec<Known>,
    next: u64,
}

impl Model {
    fn new(runtime: RuntimeHandle) -> Self {
        Self {
            runtime,
            networks: Networks::default(),
            known: Vec::new(),
            next: 0,
        }
    }

    fn open(&mut self, of_network: u8, of_host: u8) {
        self.next += 1;
        let known = Known {
            id: self.next,
            network: of_network,
            host: of_host,
            progress: Arc::new(Progress::new(&self.runtime, limits::MIN_PROGRESS_BYTES)),
            requests: 0,
        };
        let entry = Entry {
            host: host(of_network, of_host),
            progress: Arc::clone(&known.progress),
            evicted: Arc::default(),
        };
        self.networks
            .insert(network(of_network), known.id, entry, self.runtime.now());
        self.known.push(known);
    }

    fn close(&mut self, id: u64) {
        let index = self.known.iter().position(|known| known.id == id).unwrap();
        let known = self.known.remove(index);
        let removed = self
            .networks
            .remove(network(known.network), id, self.runtime.now());
        assert!(removed.is_some());
    }

    /// When a connection could have been closed first, if it can be closed.
    fn evictable_from(&self, known: &Known) -> Option<Instant> {
        let limit = match known.requests {
            0 => limits::UNUSED_BEFORE_EVICTION,
            _ => limits::STALLED_BEFORE_EVICTION,
        };
        let from = known.progress.last() + limit;
        (from <= self.runtime.now()).then_some(from)
    }

    fn longest_idle(&self, network: u8, host: Option<u8>) -> Option<u64> {
        self.known
            .iter()
            .filter(|known| known.network == network)
            .filter(|known| host.is_none_or(|host| known.host == host))
            .filter_map(|known| Some((self.evictable_from(known)?, known.id)))
            .min()
            .map(|(_, id)| id)
    }

    fn most_crowded(&self, more_than: usize) -> Option<Prefix> {
        let count = |number| {
            let of_network = self.known.iter().filter(|known| known.network == number);
            of_network.count()
        };
        (0..5)
            .filter(|&number| self.longest_idle(number, None).is_some())
            .map(|number| (count(number), network(number)))
            .max()
            .filter(|(connections, _)| *connections > more_than)
            .map(|(_, network)| network)
    }

    fn pick(&mut self, number: usize) -> Option<&mut Known> {
        let count = self.known.len();
        self.known.get_mut(number.checked_rem(count)?)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_chosen_is_what_a_scan_of_all_finds(acts in acts()) {
        run_on_host(async |clock, runtime| {
            let mut model = Model::new(runtime);
            for act in acts {
                match act {
                    Act::Open { network, host } => model.open(network, host),
                    Act::Close(number) => {
                        if let Some(id) = model.pick(number).map(|known| known.id) {
                            model.close(id);
                        }
                    }
                    Act::Request(number) => {
                        if let Some(known) = model.pick(number) {
                            known.requests += 1;
                            known.progress.on_request();
                        }
                    }
                    Act::Respond(number) => {
                        if let Some(known) = model.pick(number)
                            && known.requests > 0
                        {
                            known.requests -= 1;
                            known.progress.on_response_end();
                        }
                    }
                    Act::Wait(duration) => clock.sleep(duration).await,
                    Act::EvictOf { network: of, host: from } => {
                        let expected = model.longest_idle(of, from);
                        let from = from.map(|from| host(of, from));
                        let now = model.runtime.now();
                        let chosen = model.networks.longest_idle(network(of), from, now);
                        assert_eq!(chosen, expected);
                        if let Some(id) = chosen {
                            model.close(id);
                        }
                    }
                    Act::EvictOfMoreThan(more_than) => {
                        let expected = model.most_crowded(more_than);
                        let now = model.runtime.now();
                        let crowded = model
                            .networks
                            .most_crowded(now, |_, connections| connections > more_than);
                        assert_eq!(crowded, expected);
                    }
                }
            }
            while let Some(id) = model.pick(0).map(|known| known.id) {
                model.close(id);
            }
            let networks = &model.networks;
            assert!(networks.networks.is_empty());
            assert!(networks.waiting.is_empty() && networks.crowds.is_empty());
        });
    }
}

#[test]
fn an_eviction_looks_at_few_connections() {
    run_on_host(async |clock, runtime| {
        let mut model = Model::new(runtime);
        for number in 0..2000_u16 {
            model.open((number % 200) as u8, (number / 200) as u8);
        }
        // Half of them are busy, and stall later than the others.
        for known in model.known.iter_mut().step_by(2) {
            known.requests = 1;
            known.progress.on_request();
        }
        clock.sleep(limits::UNUSED_BEFORE_EVICTION).await;
        for _ in 0..1000 {
            let now = model.runtime.now();
            let crowded = model.networks.most_crowded(now, |_, _| true).unwrap();
            let id = model.networks.longest_idle(crowded, None, now).unwrap();
            model.close(id);
        }
        let now = model.runtime.now();
        assert_eq!(model.networks.most_crowded(now, |_, _| true), None);
        let examined = model.networks.examined;
        assert!(examined <= 4000, "{examined}");
        for _ in 0..1000 {
            assert_eq!(model.networks.most_crowded(now, |_, _| true), None);
        }
        assert_eq!(model.networks.examined, examined);
    });
}
