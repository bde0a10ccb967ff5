//! Traffic that is not measured.

use std::net::SocketAddr;
use std::sync::Arc;

use marline::TransportConfig;
use marline_link::Seed;

use super::{Stage, failed};
use crate::scenario::{Direction, Job, RunError, Traffic};
use crate::workload::background::{LongFlow, Pattern, Place, Sink, UdpSource};

/// Bytes of the IPv4 and UDP headers.
const HEADERS: u32 = 28;

/// Starts all of it; it goes on for as long as its hosts run.
pub(super) fn start(job: &Job, stage: &Stage) -> Result<(), RunError> {
    for (background, number) in job.settings.background.iter().zip(0..) {
        let from = place(stage, &background.from)?;
        let to = place(stage, &background.to)?;
        let datagrams = |rate: u64, size: u16, pattern: Pattern| {
            let port = SocketAddr::new(to.1.ip(), 9000 + number);
            let source = UdpSource {
                rate,
                size: u32::from(size) + HEADERS,
                pattern,
                start: background.start,
                seed: Seed::new(job.seed).of("background").nth(number.into()),
            };
            Sink::start(&(Arc::clone(&to.0), port)).map_err(failed)?;
            source.start(&from, port).map_err(failed)
        };
        match &background.traffic {
            Traffic::Flows {
                count,
                cc,
                direction,
            } => {
                let flow = LongFlow {
                    transport: Arc::new(TransportConfig {
                        controller: Arc::new(*cc),
                        grease: false,
                        ..TransportConfig::default()
                    }),
                    start: background.start,
                };
                let (sender, receiver) = match direction {
                    Direction::Up => (&from, &to),
                    Direction::Down => (&to, &from),
                };
                for _ in 0..*count {
                    flow.start(sender, receiver).map_err(failed)?;
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
    Ok(())
}

/// Any port of a host.
fn place(stage: &Stage, host: &str) -> Result<Place, RunError> {
    let host = stage.host(host)?;
    let address = host.addresses.first();
    let address = address.ok_or_else(|| failed("a host of background traffic has no address"))?;
    Ok((Arc::clone(&host.runtime), SocketAddr::new(*address, 0)))
}
