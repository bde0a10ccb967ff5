//! Equal seeds and equal settings give identical runs.

use std::time::Duration;

use marline::Instant;
use marline_link::{DropReason, Seed};

use crate::link::Pipe;
use crate::transfer::run;

const LEN: usize = 3_000_000;

fn lossy(seed: u64) -> Pipe {
    Pipe {
        loss: 10,
        buffer: 10_000,
        seed: Seed::new(seed),
        ..Pipe::new(20, 15)
    }
}

#[test]
fn equal_runs_have_identical_packets() {
    let first = run(&lossy(1), LEN, 1);
    // Also in parallel to another run on another thread.
    let beside = std::thread::spawn(|| run(&lossy(1), LEN, 1));
    assert_eq!(run(&lossy(1), LEN, 1), first);
    assert_eq!(beside.join().unwrap(), first);
    let reasons = [DropReason::Loss, DropReason::QueueFull];
    for reason in reasons {
        assert!(first.drops.iter().any(|drop| drop.2 == reason), "{reason}");
    }
    // Another seed of the link changes the losses; another seed of the hosts only connection IDs and packet numbers.
    let other_link = run(&lossy(2), LEN, 1);
    assert_ne!(other_link.drops, first.drops);
    assert_ne!(run(&lossy(1), LEN, 2).digest, first.digest);
}

#[test]
fn a_transfer_without_loss_fills_the_link() {
    let trace = run(&Pipe::new(20, 15), LEN, 1);
    let took = trace.done - Instant::EPOCH;
    let ideal = Duration::from_secs_f64(LEN as f64 * 8.0 / 20e6);
    assert!(
        took > ideal + 4 * Duration::from_millis(15),
        "below the propagation delay: {took:?}"
    );
    assert!(took < ideal.mul_f64(1.35), "{took:?}");
    assert_eq!(trace.drops, []);
}

/// Debug and release builds on all machines give identical runs. These numbers change only with the behaviour of
/// the stack.
#[test]
fn a_run_is_the_same_in_every_build() {
    let trace = run(&lossy(7), 300_000, 7);
    let seen = (trace.done.as_nanos(), trace.digest);
    assert_eq!(seen, (592_986_400, 0xbd8e_7e57_961c_1e6f));
}
