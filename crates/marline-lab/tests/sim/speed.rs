//! How fast a world is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use marline_lab::fabric::Plan;
use marline_lab::workload::background::{Pattern, Place, UdpSource};
use marline_link::Seed;

use crate::link::Pipe;
use crate::transfer::{LIMIT, run, world};

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

/// Datagrams over three links, and nobody at the end.
#[test]
#[ignore = "measures, and proves nothing in a debug build"]
#[expect(
    clippy::disallowed_methods,
    reason = "how long virtual time takes is real time"
)]
fn hops_per_second() {
    let mut plan = Plan::new();
    let [from, to] = [plan.host("from"), plan.host("to")];
    let [near, far] = [plan.router("near"), plan.router("far")];
    for (name, ends) in [("a", [from, near]), ("b", [near, far]), ("c", [far, to])] {
        plan.join(name, Pipe::new(10_000, 1).duplex(name), &ends)
            .unwrap();
    }
    let mut world = world(plan, 1);
    let [from, to] = ["from", "to"].map(|name| world.host(name).unwrap());
    let source = UdpSource {
        rate: 1_000_000_000,
        size: 1000,
        pattern: Pattern::Poisson,
        start: Duration::ZERO,
        seed: Seed::new(1),
    };
    let place: Place = (Arc::new(from.clone()), from.at(0));
    source.start(&place, to.at(9)).unwrap();
    let start = Instant::now();
    world
        .run(from.sleep(Duration::from_secs(8)), LIMIT)
        .unwrap();
    let seen = world.statistics();
    let hops = 3.0 * seen.packets_per_second(start.elapsed());
    println!("{hops:.0} hops/s, tasks and sockets included");
}
