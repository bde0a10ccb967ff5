//! The gain of a jump on the remembered path, and its cost on another one.

use std::time::Duration;

use super::pipe::*;
use super::*;
use crate::Instant;
use crate::congestion::Algorithm;
use ResumePhase::*;

const MS: Duration = Duration::from_millis(1);

/// 10 MB/s, 100 ms: a megabyte in flight.
const WIDE: Bottleneck = Bottleneck {
    rate: 10_000_000,
    rtt: Duration::from_millis(100),
    queue: 1_000_000,
};

/// A path with a tenth of that rate.
const NARROW: Bottleneck = Bottleneck {
    rate: 1_000_000,
    queue: 100_000,
    ..WIDE
};

const TRANSFER: u64 = 3_000_000;

/// The capacity that a connection on `path` remembers.
fn of(path: Bottleneck) -> Capacity {
    Capacity {
        window: path.product(),
        rtt: path.rtt,
        at: Instant::EPOCH,
        model: None,
    }
}

fn transfer(algorithm: Algorithm, path: Bottleneck, saved: Option<Capacity>) -> Course {
    let mut pipe = Pipe::new(algorithm, path, saved);
    pipe.data(Duration::ZERO, TRANSFER);
    pipe.run()
}

#[test]
fn a_jump_on_the_remembered_path_saves_round_trips() {
    for algorithm in Algorithm::ALL {
        let plain = transfer(algorithm, WIDE, None);
        let resumed = transfer(algorithm, WIDE, Some(of(WIDE)));
        assert_eq!(resumed.phases(), [Unvalidated, Validating, Normal]);
        assert_eq!(resumed.jump, Some(500_000));
        assert_eq!(resumed.dropped, 0);
        assert!(!resumed.forgotten);
        let saved = plain.took.saturating_sub(resumed.took);
        assert!(
            saved > 2 * WIDE.rtt,
            "{algorithm}: {:?} without, {:?} with",
            plain.took,
            resumed.took
        );
    }
}

#[test]
fn a_path_ten_times_narrower_loses_no_more_than_the_jump() {
    for algorithm in Algorithm::ALL {
        let plain = transfer(algorithm, NARROW, None);
        let resumed = transfer(algorithm, NARROW, Some(of(WIDE)));
        let phases = resumed.phases();
        assert_eq!(phases.first(), Some(&Unvalidated), "{algorithm}");
        assert_eq!(phases[phases.len() - 2..], [SafeRetreat, Normal]);
        assert!(resumed.forgotten);
        let jump = resumed.jump.expect("it jumped");
        assert!(resumed.dropped_by_jump > 0 && resumed.burst <= jump);
        assert!(resumed.dropped <= jump, "{} bytes lost", resumed.dropped);
        let (pipe, window) = resumed.retreat.expect("it retreated");
        assert!(
            window <= pipe / 2,
            "{algorithm}: {window} of {pipe} bytes in retreat"
        );
        let (pipe, ssthresh) = resumed.threshold.expect("the retreat ended");
        if !matches!(algorithm, Algorithm::Bbr | Algorithm::Bbr3) {
            assert_eq!(ssthresh, Some(pipe / 2));
        }
        assert!(
            resumed.took < 2 * plain.took,
            "{algorithm}: {:?} without, {:?} with",
            plain.took,
            resumed.took
        );
    }
}

#[test]
fn a_path_with_another_rtt_behaves_as_without_careful_resume() {
    for millis in [4, 40, 1100] {
        let path = Bottleneck {
            rtt: millis * MS,
            ..NARROW
        };
        for algorithm in Algorithm::ALL {
            let plain = transfer(algorithm, path, None);
            let resumed = transfer(algorithm, path, Some(of(WIDE)));
            assert_eq!(resumed.phases(), [Normal]);
            assert_eq!(resumed.jump, None);
            assert_eq!(resumed.took, plain.took, "{algorithm}, {millis} ms");
            assert_eq!(resumed.window, plain.window);
        }
    }
}

#[test]
fn an_app_limited_sender_does_not_jump() {
    for algorithm in Algorithm::ALL {
        let mut pipe = Pipe::new(algorithm, WIDE, Some(of(WIDE)));
        for round in 0..50 {
            pipe.data(round * 30 * MS, 2 * DATAGRAM);
        }
        let course = pipe.run();
        assert_eq!((course.jump, course.phases()), (None, vec![]));
        assert!(course.window <= 20 * DATAGRAM);
    }
}

#[test]
fn a_sender_that_stops_in_the_jump_keeps_a_window_of_what_it_sent() {
    for algorithm in Algorithm::ALL {
        let mut pipe = Pipe::new(algorithm, WIDE, Some(of(WIDE)));
        pipe.data(Duration::ZERO, 100 * DATAGRAM);
        for round in 10..60 {
            pipe.data(round * 30 * MS, DATAGRAM);
        }
        let course = pipe.run();
        assert_eq!(course.jump, Some(500_000));
        assert!(
            course.window <= 2 * 100 * DATAGRAM,
            "{algorithm}: a window of {} bytes",
            course.window
        );
        assert!(!course.forgotten);
    }
}

#[test]
fn the_jump_is_paced_over_a_round_trip() {
    let course = transfer(Algorithm::NewReno, NARROW, Some(of(NARROW)));
    assert_eq!(course.phases(), [Unvalidated, Validating, Normal]);
    assert_eq!(course.dropped_by_jump, 0);
    // A queue that holds the burst of the initial window is enough.
    let shallow = Bottleneck {
        queue: 12 * DATAGRAM,
        ..WIDE
    };
    let course = transfer(Algorithm::NewReno, shallow, Some(of(WIDE)));
    assert_eq!(course.dropped_by_jump, 0);
}
