//! Rules that every algorithm that ends slow start must obey.

use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg32;

use super::{SlowStartDecision, SlowStartExit, SlowStartSample};

const MTU: u64 = 1200;
const RTT: Duration = Duration::from_millis(40);
const STEPS: usize = 20_000;

/// Runs every check on the algorithms that `make` makes.
///
/// # Panics
///
/// If a rule is broken; the message says which.
pub fn conformance(make: impl Fn() -> Box<dyn SlowStartExit>) {
    let mut exit = make();
    assert!(!exit.name().is_empty(), "it has a name");
    for rtt in [Some(RTT), None] {
        stays_on_a_steady_path(exit.as_mut(), rtt);
    }
    survives_anything(exit.as_mut());
    exit.reset();
    stays_on_a_steady_path(exit.as_mut(), Some(RTT));
}

fn stays_on_a_steady_path(exit: &mut dyn SlowStartExit, rtt: Option<Duration>) {
    for round in 0..20 {
        exit.on_round_start();
        for _ in 0..40 {
            let decision = exit.on_ack(&SlowStartSample {
                rtt,
                min_rtt: RTT,
                window: (100 * MTU) << round,
                max_datagram_size: MTU,
                rate: Some(MTU << round),
            });
            assert_eq!(
                decision,
                SlowStartDecision::Stay,
                "no delay, no end of slow start"
            );
        }
    }
}

fn survives_anything(exit: &mut dyn SlowStartExit) {
    let mut rng = Pcg32::seed_from_u64(1);
    let mut magnitude = || rng.random::<u64>() >> rng.random_range(2..64_u32);
    for _ in 0..STEPS {
        match magnitude() % 16 {
            0 => exit.reset(),
            1..3 => exit.on_round_start(),
            _ => {
                let rtt = Duration::from_nanos(magnitude());
                let decision = exit.on_ack(&SlowStartSample {
                    rtt: (magnitude() % 4 > 0).then_some(rtt),
                    min_rtt: Duration::from_nanos(magnitude()),
                    window: magnitude(),
                    max_datagram_size: magnitude(),
                    rate: (magnitude() % 4 > 0).then_some(magnitude()),
                });
                assert_ne!(decision, SlowStartDecision::Slow(0), "slower is not a stop");
            }
        }
    }
}
