//! Traffic beside the workload.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_link::Seed;

use super::{Probe, Stage, failed, transport};
use crate::scenario::{Direction, Job, RunError, Traffic};
use crate::workload::background::{LongFlow, Pattern, Place, Received, Sink, UdpSource};

/// Bytes of the IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// Flows that always have something to send.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// What each has brought so far.
    pub(super) received: Vec<Received>,
    /// What is seen of their senders.
    pub(super) probe: Probe,
}

/// Starts all of it; it goes on for as long as its hosts run.
pub(super) fn start(job: &Job, stage: &Stage) -> Result<Flows, RunError> {
    let mut flows = Flows::default();
    for (background, number) in job.settings.background.iter().zip(0..) {
        let from = place(stage, &background.from)?;
        let to = place(stage, &background.to)?;
        let seed = Seed::new(job.seed).of("background").nth(number.into());
        let datagrams = |rate: u64, size: u16, pattern: Pattern| {
            let port = SocketAddr::new(to.1.ip(), 9000 + number);
            let source = UdpSource {
                rate,
                size: u32::from(size) + HEADERS,
                pattern,
                start: background.start,
                seed,
            };
            Sink::start(&(Arc::clone(&to.0), port)).map_err(failed)?;
            source.start(&from, port).map_err(failed)
        };
        match &background.traffic {
            Traffic::Flows {
                count,
                ends,
                direction,
                spread,
            } => {
                let transport = transport(ends);
                let (sender, receiver) = match direction {
                    Direction::Up => (&from, &to),
                    Direction::Down => (&to, &from),
                };
                for flow in 0..*count {
                    let flow = LongFlow {
                        transport: Arc::clone(&transport),
                        start: background.start + part(*spread, seed.nth(flow as u64)),
                    };
                    let observer = flows.probe.observers(false);
                    let received = flow.start_observed(sender, receiver, Some(observer));
                    flows.received.push(received.map_err(failed)?);
                }
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
                datagrams(*rate, *size, pattern)?;
            }
            Traffic::Poisson { rate, size } => datagrams(*rate, *size, Pattern::Poisson)?,
        }
    }
    Ok(flows)
}

/// Some part of `span`, each as likely.
fn part(span: Duration, seed: Seed) -> Duration {
    span.mul_f64((seed.value() >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Any port of a host.
fn place(stage: &Stage, host: &str) -> Result<Place, RunError> {
    let host = stage.host(host)?;
    let address = host.addresses.first();
    let address = address.ok_or_else(|| failed("a host of background traffic has no address"))?;
    Ok((Arc::clone(&host.runtime), SocketAddr::new(*address, 0)))
}
