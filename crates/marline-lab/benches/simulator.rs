//! The speed of the simulator: `cargo bench -p marline-lab`.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use marline_lab::scenario::{Backend, Experiment, Job};
use marline_lab::sim::Simulator;
use marline_lab::workload::background::{HostAddress, Pattern, UdpSource};
use marline_link::{LinkSpec, Seed};
use marline_sim::fabric::Plan;
use marline_sim::{Sim, SimConfig};

fn main() -> Result<(), Box<dyn Error>> {
    for link in [
        "rate=1gbps,rtt=20ms",
        "rate=200mbps,rtt=20ms,loss=0.1%,buffer=500kB",
        "lte-a",
        "wifi-n-190",
    ] {
        transfer(link)?;
    }
    hops()
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures the real time that virtual time takes"
)]
fn now() -> Instant {
    Instant::now()
}

/// Transfers 100 MB between real endpoints.
fn transfer(link: &str) -> Result<(), Box<dyn Error>> {
    let text = format!(
        "title = \"speed\"\nlink = \"{link}\"\ncc = \"bbr\"\n[workload]\ntransfer = \"100MB\"\n"
    );
    let experiment = Experiment::parse(&text, "speed.toml", &[])?;
    let Some(cell) = experiment.cells.first() else {
        return Ok(());
    };
    let job = Job {
        experiment: "speed".into(),
        variant: Arc::clone(&cell.variant),
        parameters: Arc::clone(&cell.parameters),
        repeat: 0,
        seed: 1,
        settings: Arc::clone(&cell.settings),
        qlog: None,
        pcap: None,
        har: None,
        watch: false,
    };
    let start = now();
    let outcome = Simulator.run(&job)?;
    let wall = start.elapsed().as_secs_f64();
    println!(
        "{link}: {:.0} packets/s, {:.2} s of virtual time in a second",
        outcome.packets as f64 / wall,
        outcome.virtual_s / wall,
    );
    Ok(())
}

/// Sends datagrams over three links to a host without a socket.
fn hops() -> Result<(), Box<dyn Error>> {
    let mut plan = Plan::new();
    let [from, to] = [plan.host("from"), plan.host("to")];
    let [near, far] = [plan.router("near"), plan.router("far")];
    let spec: LinkSpec = "rate=10gbps,rtt=2ms".parse()?;
    for (name, ends) in [("a", [from, near]), ("b", [near, far]), ("c", [far, to])] {
        for medium in spec.build(Seed::new(1).of(name))? {
            plan.join(name, medium, &ends)?;
        }
    }
    let mut sim = Sim::new(plan.build()?, SimConfig::new(Seed::new(1)));
    let (Some(from), Some(to)) = (sim.host("from"), sim.host("to")) else {
        return Ok(());
    };
    let source = UdpSource {
        rate: 1_000_000_000,
        size: 1000,
        pattern: Pattern::Poisson,
        start: Duration::ZERO,
        seed: Seed::new(1),
    };
    let sender = HostAddress {
        runtime: Arc::new(from.clone()),
        address: from.at(0),
    };
    source.start(&sender, to.at(9))?;
    let start = now();
    sim.run(from.sleep(Duration::from_secs(8)), Duration::from_secs(60))?;
    let hops = 3.0 * sim.statistics().packets_per_second(start.elapsed());
    println!("three links: {hops:.0} packet-hops/s, tasks and sockets included");
    Ok(())
}
