//! How fast a world is.

use std::time::{Duration, Instant};

use marline_link::Seed;

use crate::link::Pipe;
use crate::transfer::run;

/// In a release build: `cargo test --release -p marline-lab --test sim speed -- --ignored --nocapture`.
#[test]
#[ignore = "measures, and proves nothing in a debug build"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long virtual time takes is real time"
)]
fn packets_per_second() {
    for (name, pipe) in [
        ("clean", Pipe::new(1000, 10)),
        (
            "lossy",
            Pipe {
                loss: 1,
                buffer: 500_000,
                seed: Seed::new(1),
                ..Pipe::new(200, 10)
            },
        ),
    ] {
        let start = Instant::now();
        let seen = run(&pipe, 100_000_000, 1).statistics;
        let wall: Duration = start.elapsed();
        println!(
            "{name}: {:.0} packets/s, {:.2} s of virtual time in a second, {:.2} polls a packet",
            seen.packets_per_second(wall),
            seen.speed(wall),
            seen.polls as f64 / seen.packets_sent as f64,
        );
    }
}
