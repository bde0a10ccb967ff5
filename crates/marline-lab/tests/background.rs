//! Background traffic.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use marline::TransportConfig;
use marline::congestion::Algorithm;
use marline_lab::workload::background::{HostAddress, LongFlow, Pattern, Sink, UdpSource};
use marline_link::{LinkSpec, Seed};
use marline_sim::fabric::Plan;
use marline_sim::{Sim, SimConfig};

/// Two senders, a bottleneck of 10 Mbit/s, two receivers.
fn dumbbell() -> Sim {
    let mut plan = Plan::new();
    let [near, far] = [plan.router("near"), plan.router("far")];
    let mut links = vec![(
        "bottleneck",
        [near, far],
        "rate=10mbps,rtt=20ms,buffer=50kB",
    )];
    for (name, router) in [("s1", near), ("s2", near), ("r1", far), ("r2", far)] {
        let host = plan.host(name);
        links.push((name, [host, router], "rate=1gbps,rtt=2ms"));
    }
    let seed = Seed::new(1);
    for (name, ends, spec) in links {
        let spec: LinkSpec = spec.parse().unwrap();
        for medium in spec.build(seed.of(name)).unwrap() {
            plan.join(name, medium, &ends).unwrap();
        }
    }
    Sim::new(plan.build().unwrap(), SimConfig::new(seed))
}

fn any_port(sim: &Sim, name: &str) -> HostAddress {
    let host = sim.host(name).unwrap();
    let address = host.at(0);
    HostAddress {
        runtime: Arc::new(host),
        address,
    }
}

/// Mbit/s of payload over five seconds, after two to settle.
fn rates<const N: usize>(sim: &mut Sim, flows: [&dyn Fn() -> u64; N]) -> [f64; N] {
    let host = sim.hosts().remove(0);
    let limit = Duration::from_secs(10);
    sim.run(host.sleep(Duration::from_secs(2)), limit).unwrap();
    let before = flows.map(|flow| flow());
    sim.run(host.sleep(Duration::from_secs(5)), limit).unwrap();
    std::array::from_fn(|i| (flows[i]() - before[i]) as f64 * 8.0 / 5e6)
}

#[test]
fn udp_sources_send_at_their_rate() {
    let mut sim = dumbbell();
    let [from, mut to] = ["s1", "r1"].map(|name| any_port(&sim, name));
    to.address.set_port(9);
    let sink = Sink::start(&to).unwrap();
    let source = UdpSource {
        rate: 4_000_000,
        size: 1028,
        pattern: Pattern::Poisson,
        start: Duration::from_secs(1),
        seed: Seed::new(1),
    };
    source.start(&from, to.address).unwrap();
    let [rate] = rates(&mut sim, [&|| sink.bytes()]);
    assert!((3.5..4.3).contains(&rate), "{rate}");
}

#[test]
fn long_flows_share_the_remaining_rate() {
    let mut sim = dumbbell();
    let flow = |algorithm| LongFlow {
        transport: Arc::new(TransportConfig {
            controller: Arc::new(algorithm),
            ..TransportConfig::default()
        }),
        start: Duration::ZERO,
    };
    let [s1, s2, r1, r2] = ["s1", "s2", "r1", "r2"].map(|name| any_port(&sim, name));
    let reno = flow(Algorithm::NewReno).start(&s1, &r1).unwrap();
    let cubic = flow(Algorithm::Cubic).start(&s2, &r2).unwrap();
    let source = UdpSource {
        rate: 2_000_000,
        size: 1028,
        pattern: Pattern::Constant,
        start: Duration::ZERO,
        seed: Seed::new(1),
    };
    // No socket receives them, but they load the bottleneck.
    let nobody = sim.host("r1").unwrap().at(9);
    source.start(&s1, nobody).unwrap();
    let [reno, cubic] = rates(&mut sim, [&|| reno.bytes(), &|| cubic.bytes()]);
    assert!((6.8..8.0).contains(&(reno + cubic)), "{reno} + {cubic}");
    assert!(reno > 1.0 && cubic > 1.0, "{reno} and {cubic}");
    assert!(sim.statistics().no_socket > 1000);
}
