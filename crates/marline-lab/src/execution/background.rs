//! Background traffic.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline::TransportConfig;
use marline_link::Seed;

use super::{Probe, Testbed, failed, transport};
use crate::scenario::{Background, Direction, EndpointSettings, Job, RunError, TcpRunner, Traffic};
use crate::workload::background::{
    HostAddress, LongFlow, Packets, Pattern, Received, Sink, UdpSource,
};

/// Bytes of the IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// Bulk flows, which always have data to send.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// The bytes that each has delivered so far.
    pub(super) received: Vec<Received>,
    /// Observes their senders.
    pub(super) probe: Probe,
    /// Packets counted on the links, of flows whose senders cannot be observed.
    pub(super) packets: Vec<Packets>,
    /// The traffic with metrics of its own.
    measured: Vec<Measured>,
}

/// A member of `[[background]]` with metrics.
#[derive(Debug)]
struct Measured {
    /// Its number, from 1.
    number: u16,
    /// When it begins, from the start of the run.
    start: Duration,
    received: Vec<Received>,
}

impl Flows {
    /// Mean goodput of the traffic with metrics, when the run has lasted for `elapsed`.
    pub(super) fn metrics(&self, elapsed: Duration) -> impl Iterator<Item = (String, f64)> {
        self.measured.iter().map(move |one| {
            let bytes: u64 = one.received.iter().map(Received::bytes).sum();
            let seconds = elapsed.saturating_sub(one.start).as_secs_f64().max(1e-9);
            let name = format!("background_{}_mbps", one.number);
            (name, bytes as f64 * 8e-6 / seconds)
        })
    }
}

/// Starts all background traffic; it runs as long as its hosts.
pub(super) fn start(job: &Job, testbed: &Testbed) -> Result<Flows, RunError> {
    let mut flows = Flows::default();
    let mut tcp = testbed.tcp.iter();
    for (background, number) in job.settings.background.iter().zip(0..) {
        let from = any_port(testbed, &background.from)?;
        let to = any_port(testbed, &background.to)?;
        let seed = seed_of(job, number);
        let first = flows.received.len();
        let mut long = |ends: &EndpointSettings, count, direction, spread| {
            let ends = Ends {
                transport: transport(ends),
                hosts: match direction {
                    Direction::Up => [&from, &to],
                    Direction::Down => [&to, &from],
                },
            };
            let begins = begins(job, number, background, spread).take(count);
            flows.start(&ends, begins)
        };
        let datagrams = |rate: u64, size: u16, pattern: Pattern| {
            let sink = SocketAddr::new(to.address.ip(), 9000 + number);
            let source = UdpSource {
                rate,
                size: u32::from(size) + HEADERS,
                pattern,
                start: background.start,
                seed,
            };
            let received = Sink::start(&HostAddress {
                runtime: Arc::clone(&to.runtime),
                address: sink,
            });
            source.start(&from, sink).map_err(failed)?;
            received.map(Some).map_err(failed)
        };
        let datagrams = match &background.traffic {
            Traffic::Flows {
                count,
                ends,
                direction,
                spread,
            } => {
                long(ends, *count, *direction, *spread)?;
                None
            }
            Traffic::Tcp(tcp) if tcp.run_by == TcpRunner::StandIn => {
                if tcp.rate.is_some() {
                    return Err(RunError::Unsupported(
                        "flows that stand in for TCP send as fast as they can; leave the rate out, or add --backend emu"
                            .to_owned(),
                    ));
                }
                long(&tcp.stand_in(), tcp.count, tcp.direction, tcp.spread)?;
                None
            }
            Traffic::Tcp(known) => {
                for _ in 0..known.count {
                    let seen = tcp.next().ok_or_else(no_kernel)?;
                    flows.received.push(seen.received.clone());
                    flows.packets.push(seen.packets.clone());
                }
                None
            }
            Traffic::OnOff {
                rate,
                on,
                off,
                size,
            } => {
                let pattern = match off.is_zero() {
                    true => Pattern::Constant,
                    false => Pattern::OnOff { on: *on, off: *off },
                };
                datagrams(*rate, *size, pattern)?
            }
            Traffic::Poisson { rate, size } => datagrams(*rate, *size, Pattern::Poisson)?,
        };
        if background.measured {
            let long = flows.received[first..].iter().cloned();
            flows.measured.push(Measured {
                number: number + 1,
                start: background.start,
                received: long.chain(datagrams).collect(),
            });
        }
    }
    Ok(flows)
}

/// Both ends of flows, the sender's first.
struct Ends<'a> {
    transport: Arc<TransportConfig>,
    hosts: [&'a HostAddress; 2],
}

impl Flows {
    /// Starts a flow at each of these times.
    fn start(
        &mut self,
        ends: &Ends<'_>,
        begins: impl Iterator<Item = Duration>,
    ) -> Result<(), RunError> {
        let [sender, receiver] = ends.hosts;
        for start in begins {
            let flow = LongFlow {
                transport: Arc::clone(&ends.transport),
                start,
            };
            let observer = self.probe.observers(false);
            let received = flow.start_observed(sender, receiver, Some(observer));
            self.received.push(received.map_err(failed)?);
        }
        Ok(())
    }
}

/// When the flows of background number `number` begin, from the start of the run.
pub(crate) fn begins(
    job: &Job,
    number: u16,
    background: &Background,
    spread: Duration,
) -> impl Iterator<Item = Duration> + use<> {
    let (start, seed) = (background.start, seed_of(job, number));
    (0..).map(move |flow| start + part(spread, seed.nth(flow)))
}

fn seed_of(job: &Job, number: u16) -> Seed {
    Seed::new(job.seed).of("background").nth(number.into())
}

fn no_kernel() -> RunError {
    RunError::Unsupported(
        "TCP in the background needs the emulator; add --backend emu, or leave it to QUIC flows"
            .to_owned(),
    )
}

/// A uniformly distributed part of `span`.
fn part(span: Duration, seed: Seed) -> Duration {
    span.mul_f64((seed.value() >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Any port of a host.
fn any_port(testbed: &Testbed, host: &str) -> Result<HostAddress, RunError> {
    let host = testbed.host(host)?;
    let address = host.addresses.first();
    let address = address.ok_or_else(|| failed("a host of background traffic has no address"))?;
    Ok(HostAddress {
        runtime: Arc::clone(&host.runtime),
        address: SocketAddr::new(*address, 0),
    })
}
