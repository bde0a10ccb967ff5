//! Connections that return to the capacity that an earlier one found (RFC 9959).

use std::sync::Mutex;

use super::*;
use crate::congestion::{Algorithm, ConnectionKind};
use crate::coordination::bundle::{Membership, MembershipId};
use crate::coordination::careful_resume::Capacity;
use crate::coordination::history::{CarefulHistory, HistoryConfig, MemoryStore, PathHistory};
use crate::observe::events::CarefulResumePhaseUpdated;
use crate::observe::events::{CarefulResumePhase as Phase, CarefulResumeTrigger as Trigger};
use crate::observe::{Event as Observed, Observer};
use crate::testing::SERVER_NAME;

pub(super) const ALL: [Algorithm; 3] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr];
pub(super) const LARGE: usize = 3_000_000;

/// What the server's connections told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) updates: Vec<CarefulResumePhaseUpdated>,
    /// Bytes lost from the jump to the normal phase, handshakes included.
    pub(super) lost: usize,
}

pub(super) struct Listener(pub(super) Arc<Mutex<Told>>);

impl Observer for Listener {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        let mut told = self.0.lock().unwrap();
        match event {
            Observed::CarefulResumePhaseUpdated(update) => told.updates.push(*update),
            Observed::PacketLost(lost) => {
                let phase = told.updates.last().map(|update| update.new);
                let risky = !matches!(phase, None | Some(Phase::Normal | Phase::Reconnaissance));
                told.lost += if risky { lost.size } else { 0 };
            }
            _ => {}
        }
    }
}

/// 20 Mbit/s and 40 ms, with room for one window of it.
pub(super) fn link() -> Conditions {
    Conditions {
        rate: Some(2_500_000),
        queue: 100_000,
        delay: Duration::from_millis(20),
        ..Conditions::default()
    }
}

struct Visits {
    pair: Pair,
    careful: Arc<CarefulHistory>,
    told: Arc<Mutex<Told>>,
}

fn visits(controller: Algorithm) -> Visits {
    let careful = Arc::new(CarefulHistory::new(
        HistoryConfig::default(),
        Arc::new(MemoryStore::default()),
    ));
    let told = Arc::<Mutex<Told>>::default();
    let listener = Arc::clone(&told);
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            controller: Arc::new(controller),
            history: Some(careful.clone()),
            ..TransportConfig::default()
        },
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_| {
                Some(Box::new(Listener(Arc::clone(&listener))) as Box<dyn Observer>)
            }));
        }),
        ..PairConfig::default()
    });
    pair.network.set(link());
    Visits {
        pair,
        careful,
        told,
    }
}

/// Visits after one that was large.
fn returning(controller: Algorithm) -> Visits {
    let mut visits = visits(controller);
    visits.visit(LARGE);
    assert!(visits.known().is_some());
    assert!(visits.told().updates.is_empty());
    visits
}

impl Visits {
    fn visit(&mut self, len: usize) -> Duration {
        let ends = self.pair.establish();
        let took = download(&mut self.pair, ends.0, ends.1, &pattern(len));
        close(&mut self.pair, ends.0);
        took
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap()
    }

    fn phases(&self) -> Vec<(Phase, Option<Trigger>)> {
        let told = self.told();
        let updates = told.updates.iter();
        updates.map(|update| (update.new, update.trigger)).collect()
    }

    fn known(&self) -> Option<Capacity> {
        self.careful.saved(&ConnectionKind {
            now: self.pair.now,
            peer: self.pair.client.address,
            server_name: Some(SERVER_NAME),
            resumed: false,
            max_datagram_size: 1200,
        })
    }
}

#[test]
fn the_next_connection_jumps_to_half_of_the_saved_capacity() {
    for controller in ALL {
        let first = visits(controller).visit(300_000);
        let mut visits = returning(controller);
        let known = visits.known().unwrap();
        let again = visits.visit(300_000);
        let phases = visits.phases();
        assert_eq!(phases[0], (Phase::Reconnaissance, None));
        let jumped = (Phase::Unvalidated, Some(Trigger::CongestionWindowLimited));
        assert_eq!(phases[1], jumped, "{controller:?}");
        assert_eq!(phases.last().unwrap().0, Phase::Normal, "{phases:?}");
        assert!(
            phases.iter().all(|(phase, _)| *phase != Phase::SafeRetreat),
            "{controller:?}: {phases:?}"
        );
        let window = visits.told().updates[1].congestion_window;
        assert_eq!(window, Some(known.window / 2), "{controller:?}");
        assert!(again < first, "{controller:?}: {again:?}, {first:?}");
        assert!(visits.known().is_some(), "it told of what it found");
    }
}

#[test]
fn a_narrower_path_causes_a_safe_retreat_and_removes_the_saved_capacity() {
    for controller in ALL {
        let mut visits = returning(controller);
        let known = visits.known().unwrap();
        visits.pair.network.set(Conditions {
            rate: Some(250_000),
            queue: 15_000,
            ..link()
        });
        let ends = visits.pair.establish();
        let mut transfer = Transfer::down(&mut visits.pair, ends, &pattern(600_000));
        let told = Arc::clone(&visits.told);
        let retreated = visits.pair.drive_until(PATIENCE, |pair| {
            transfer.advance(pair);
            let told = told.lock().unwrap();
            let mut phases = told.updates.iter().map(|update| update.new);
            phases.any(|phase| phase == Phase::SafeRetreat)
        });
        assert!(retreated, "{controller:?}: {:?}", visits.phases());
        assert_eq!(visits.known(), None, "what was remembered was wrong");
        transfer.complete(&mut visits.pair);
        let phases = visits.phases();
        assert_eq!(
            phases.last().unwrap(),
            &(Phase::Normal, Some(Trigger::ExitRecovery)),
            "{controller:?}"
        );
        let lost = visits.told().lost as u64;
        assert!(lost > 0);
        assert!(
            lost <= known.window / 2,
            "{controller:?}: {lost} of {known:?}"
        );
        close(&mut visits.pair, ends.0);
        let now_known = visits.known().unwrap().window;
        assert!(now_known < known.window / 2, "{controller:?}: {now_known}");
    }
}

#[test]
fn another_round_trip_time_ends_careful_resume_and_keeps_the_saved_capacity() {
    for delay in [5, 250] {
        let mut visits = returning(Algorithm::Cubic);
        let before = visits.known();
        visits.pair.network.set(Conditions {
            delay: Duration::from_millis(delay),
            ..link()
        });
        let ends = visits.pair.establish();
        download(&mut visits.pair, ends.0, ends.1, &pattern(300_000));
        let phases = [
            (Phase::Reconnaissance, None),
            (Phase::Normal, Some(Trigger::RttNotValidated)),
        ];
        assert_eq!(visits.phases(), phases, "{delay} ms");
        assert_eq!(visits.known(), before, "it may be right for the other path");
    }
}

#[test]
fn careful_resume_does_not_start_from_another_address() {
    let mut visits = returning(Algorithm::Cubic);
    let handle = visits.pair.connect();
    let now = visits.pair.now;
    visits.pair.client(handle).close(now, 0, b"");
    visits.pair.drive(Duration::from_secs(5));
    visits.pair.server.accepted.clear();
    let elsewhere = "198.51.100.1:50000".parse().unwrap();
    visits.pair.migrate(handle, elsewhere);
    visits.visit(300_000);
    assert_eq!(visits.phases(), []);
}

#[test]
fn a_loss_in_reconnaissance_removes_the_saved_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let ends = visits.pair.establish();
    let mut number = 0;
    visits.pair.network.filter = Some(Box::new(move |direction, datagram| {
        let large = direction == Direction::ToClient && datagram.bytes.len() > 1000;
        number += i32::from(large);
        large && number == 4
    }));
    let mut transfer = Transfer::down(&mut visits.pair, ends, &pattern(300_000));
    visits
        .pair
        .drive_until(Duration::from_millis(200), |pair| transfer.advance(pair));
    let phases = [
        (Phase::Reconnaissance, None),
        (Phase::Normal, Some(Trigger::PacketLoss)),
    ];
    assert_eq!(visits.phases(), phases);
    assert_eq!(visits.known(), None);
    transfer.complete(&mut visits.pair);
}

#[test]
fn one_of_two_concurrent_connections_uses_the_saved_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let pairs = [visits.pair.establish(), visits.pair.establish()];
    let data = pattern(300_000);
    let mut transfers = pairs.map(|ends| Transfer::down(&mut visits.pair, ends, &data));
    let done = visits.pair.drive_until(PATIENCE, |pair| {
        let done = transfers
            .each_mut()
            .map(|transfer| transfer.received() == data.len() || transfer.advance(pair));
        done == [true, true]
    });
    assert!(done);
    let phases = visits.phases();
    let jumps = phases
        .iter()
        .filter(|(phase, _)| *phase == Phase::Unvalidated);
    assert_eq!(jumps.count(), 1);
    assert!(phases.contains(&(Phase::Normal, None)), "the other gave up");
}

#[test]
fn a_migration_ends_careful_resume_and_keeps_the_saved_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let ends = visits.pair.establish();
    let before = visits.known();
    let elsewhere = "198.51.100.1:50000".parse().unwrap();
    visits.pair.migrate(ends.0, elsewhere);
    download(&mut visits.pair, ends.0, ends.1, &pattern(300_000));
    let phases = [
        (Phase::Reconnaissance, None),
        (Phase::Normal, Some(Trigger::PathChanged)),
    ];
    assert_eq!(visits.phases(), phases);
    visits
        .pair
        .migrate(ends.0, "192.0.2.1:50000".parse().unwrap());
    assert_eq!(visits.known(), before);
}

#[test]
fn members_of_a_bundle_do_not_use_careful_resume() {
    let mut visits = returning(Algorithm::Cubic);
    visits.pair.reconfigure_server(|server, _| {
        server.transport = Arc::new(TransportConfig {
            bundle: Some(Arc::default()),
            ..(*server.transport).clone()
        });
    });
    visits.pair.client_config.bundle = Some(Membership {
        id: MembershipId([7; 16]),
        connections: 3,
    });
    visits.visit(300_000);
    assert_eq!(visits.phases(), []);
    assert!(visits.known().is_some());
}

#[test]
fn a_window_that_was_not_validated_is_not_saved_as_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let known = visits.known().unwrap();
    let ends = visits.pair.establish();
    let mut transfer = Transfer::down(&mut visits.pair, ends, &pattern(LARGE));
    let told = Arc::clone(&visits.told);
    visits.pair.drive_until(PATIENCE, |pair| {
        transfer.advance(pair);
        told.lock().unwrap().updates.len() > 1
    });
    assert_eq!(visits.phases()[1].0, Phase::Unvalidated);
    let now = visits.pair.now;
    visits.pair.server(ends.1).close(now, 0, b"");
    let found = visits.known().map_or(0, |known| known.window);
    assert!(found < known.window / 4, "{found} of {known:?}");
}
