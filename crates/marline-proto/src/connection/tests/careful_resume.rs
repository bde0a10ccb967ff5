//! Careful Resume with the capacity that an earlier connection measured (RFC 9959).

use std::sync::Mutex;

use super::*;
use crate::congestion::{Algorithm, ConnectionKind};
use crate::coordination::bundle::{Membership, MembershipId};
use crate::coordination::careful_resume::{Capacity, Reconnaissance};
use crate::coordination::history::{CarefulHistory, HistoryConfig, MemoryStore, PathHistory};
use crate::observe::events::CarefulResumePhaseUpdated;
use crate::observe::events::{CarefulResumePhase as Phase, CarefulResumeTrigger as Trigger};
use crate::observe::{Event as Observed, Observer};
use crate::testing::SERVER_NAME;

pub(super) const ALL: [Algorithm; 3] = [Algorithm::NewReno, Algorithm::Cubic, Algorithm::Bbr];
pub(super) const LARGE: usize = 3_000_000;

/// Events of the server's connections.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) updates: Vec<CarefulResumePhaseUpdated>,
    /// Bytes lost between the jump and the normal phase, including those of handshakes.
    pub(super) lost: usize,
}

pub(super) struct Recorder(pub(super) Arc<Mutex<Recorded>>);

impl Observer for Recorder {
    fn on_event(&mut self, _now: Instant, event: &Observed<'_>) {
        let mut recorded = self.0.lock().unwrap();
        match event {
            Observed::CarefulResumePhaseUpdated(update) => recorded.updates.push(*update),
            Observed::PacketLost(lost) => {
                let phase = recorded.updates.last().map(|update| update.new);
                let jumped = !matches!(phase, None | Some(Phase::Normal | Phase::Reconnaissance));
                recorded.lost += if jumped { lost.size } else { 0 };
            }
            _ => {}
        }
    }
}

/// 20 Mbit/s and 40 ms, with a queue of one bandwidth-delay product.
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
    recorded: Arc<Mutex<Recorded>>,
}

fn visits(controller: Algorithm) -> Visits {
    let careful = Arc::new(CarefulHistory::new(
        HistoryConfig::default(),
        Arc::new(MemoryStore::default()),
    ));
    let recorded = Arc::<Mutex<Recorded>>::default();
    let sink = Arc::clone(&recorded);
    let mut pair = Pair::with(PairConfig {
        server: TransportConfig {
            controller: Arc::new(controller),
            history: Some(careful.clone()),
            ..TransportConfig::default()
        },
        adjust_server: Box::new(move |server| {
            server.observer = Some(Arc::new(move |_| {
                Some(Box::new(Recorder(Arc::clone(&sink))) as Box<dyn Observer>)
            }));
        }),
        ..PairConfig::default()
    });
    pair.network.set(link());
    Visits {
        pair,
        careful,
        recorded,
    }
}

/// Visits after one with a large transfer, whose capacity was saved.
fn returning(controller: Algorithm) -> Visits {
    let mut visits = visits(controller);
    visits.visit(LARGE);
    assert!(visits.saved().is_some());
    assert!(visits.recorded().updates.is_empty());
    visits
}

impl Visits {
    fn visit(&mut self, len: usize) -> Duration {
        let ends = self.pair.establish();
        let took = download(&mut self.pair, ends, &pattern(len));
        close(&mut self.pair, ends.client);
        took
    }

    fn recorded(&self) -> std::sync::MutexGuard<'_, Recorded> {
        self.recorded.lock().unwrap()
    }

    fn phases(&self) -> Vec<(Phase, Option<Trigger>)> {
        let recorded = self.recorded();
        let updates = recorded.updates.iter();
        updates.map(|update| (update.new, update.trigger)).collect()
    }

    /// The capacity saved for the client's address.
    fn saved(&self) -> Option<Capacity> {
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
        let saved = visits.saved().unwrap();
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
        let window = visits.recorded().updates[1].congestion_window;
        assert_eq!(window, Some(saved.window / 2), "{controller:?}");
        assert!(again < first, "{controller:?}: {again:?}, {first:?}");
        assert!(visits.saved().is_some(), "no capacity was saved");
    }
}

#[test]
fn a_jump_after_the_handshake_saves_a_round_trip() {
    let visit = |reconnaissance| {
        let mut visits = visits(Algorithm::Bbr3);
        visits.pair.reconfigure_server(|server, _| {
            let mut transport = (*server.transport).clone();
            transport.careful_resume.reconnaissance = reconnaissance;
            server.transport = Arc::new(transport);
        });
        visits.visit(LARGE);
        let time = visits.visit(100_000);
        let phases = visits.phases();
        assert_eq!(phases[1].0, Phase::Unvalidated, "{phases:?}");
        assert!(phases.iter().all(|(phase, _)| *phase != Phase::SafeRetreat));
        time
    };
    let [early, late] = [Reconnaissance::Handshake, Reconnaissance::FirstFlight].map(visit);
    assert!(
        early + link().delay < late,
        "{early:?} after the handshake, {late:?} after the first flight"
    );
}

#[test]
fn a_narrower_path_causes_a_safe_retreat_and_removes_the_saved_capacity() {
    for controller in ALL {
        let mut visits = returning(controller);
        let saved = visits.saved().unwrap();
        visits.pair.network.set(Conditions {
            rate: Some(250_000),
            queue: 15_000,
            ..link()
        });
        let ends = visits.pair.establish();
        let mut transfer = Transfer::down(&mut visits.pair, ends, &pattern(600_000));
        let recorded = Arc::clone(&visits.recorded);
        let retreated = visits.pair.drive_until(TIMEOUT, |pair| {
            transfer.advance(pair);
            let recorded = recorded.lock().unwrap();
            let mut phases = recorded.updates.iter().map(|update| update.new);
            phases.any(|phase| phase == Phase::SafeRetreat)
        });
        assert!(retreated, "{controller:?}: {:?}", visits.phases());
        assert_eq!(visits.saved(), None, "the capacity was not removed");
        transfer.complete(&mut visits.pair);
        let phases = visits.phases();
        assert_eq!(
            phases.last().unwrap(),
            &(Phase::Normal, Some(Trigger::ExitRecovery)),
            "{controller:?}"
        );
        let lost = visits.recorded().lost as u64;
        assert!(lost > 0);
        assert!(
            lost <= saved.window / 2,
            "{controller:?}: {lost} of {saved:?}"
        );
        close(&mut visits.pair, ends.client);
        let now_saved = visits.saved().unwrap().window;
        assert!(now_saved < saved.window / 2, "{controller:?}: {now_saved}");
    }
}

#[test]
fn another_round_trip_time_ends_careful_resume_and_keeps_the_saved_capacity() {
    for delay in [5, 250] {
        let mut visits = returning(Algorithm::Cubic);
        let before = visits.saved();
        visits.pair.network.set(Conditions {
            delay: Duration::from_millis(delay),
            ..link()
        });
        let ends = visits.pair.establish();
        download(&mut visits.pair, ends, &pattern(300_000));
        let phases = [
            (Phase::Reconnaissance, None),
            (Phase::Normal, Some(Trigger::RttNotValidated)),
        ];
        assert_eq!(visits.phases(), phases, "{delay} ms");
        // It may still apply to the path with the earlier round-trip time.
        assert_eq!(visits.saved(), before);
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
    assert_eq!(visits.saved(), None);
    transfer.complete(&mut visits.pair);
}

#[test]
fn one_of_two_concurrent_connections_uses_the_saved_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let pairs = [visits.pair.establish(), visits.pair.establish()];
    let data = pattern(300_000);
    let mut transfers = pairs.map(|ends| Transfer::down(&mut visits.pair, ends, &data));
    let done = visits.pair.drive_until(TIMEOUT, |pair| {
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
    let stopped = (Phase::Normal, None);
    assert!(
        phases.contains(&stopped),
        "no connection stopped: {phases:?}"
    );
}

#[test]
fn a_migration_ends_careful_resume_and_keeps_the_saved_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let ends = visits.pair.establish();
    let before = visits.saved();
    let elsewhere = "198.51.100.1:50000".parse().unwrap();
    visits.pair.migrate(ends.client, elsewhere);
    download(&mut visits.pair, ends, &pattern(300_000));
    let phases = [
        (Phase::Reconnaissance, None),
        (Phase::Normal, Some(Trigger::PathChanged)),
    ];
    assert_eq!(visits.phases(), phases);
    visits
        .pair
        .migrate(ends.client, "192.0.2.1:50000".parse().unwrap());
    assert_eq!(visits.saved(), before);
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
    assert!(visits.saved().is_some());
}

#[test]
fn a_window_that_was_not_validated_is_not_saved_as_capacity() {
    let mut visits = returning(Algorithm::Cubic);
    let saved = visits.saved().unwrap();
    let ends = visits.pair.establish();
    let mut transfer = Transfer::down(&mut visits.pair, ends, &pattern(LARGE));
    let recorded = Arc::clone(&visits.recorded);
    visits.pair.drive_until(TIMEOUT, |pair| {
        transfer.advance(pair);
        recorded.lock().unwrap().updates.len() > 1
    });
    assert_eq!(visits.phases()[1].0, Phase::Unvalidated);
    let now = visits.pair.now;
    visits.pair.server(ends.server).close(now, 0, b"");
    let now_saved = visits.saved().map_or(0, |capacity| capacity.window);
    assert!(now_saved < saved.window / 4, "{now_saved} of {saved:?}");
}
