//! `marline flow --interface`.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use marline_flow::capture::{Live, LiveError};

use super::{Export, PACKETS_PER_POLL, some_time, unwritable};
use crate::failure::{Failure, print_message};

/// The time to wait for a packet before checking for signals.
const WAIT: Duration = Duration::from_millis(100);

/// Flags of a live capture.
#[derive(Debug, Args)]
pub(super) struct LiveFlags {
    /// Capture on this network interface until Ctrl-C, instead of reading captures; needs root or CAP_NET_RAW
    #[arg(long, value_name = "IFACE", conflicts_with = "captures")]
    interface: Option<String>,

    /// Capture for this long
    #[arg(long, value_name = "TIME", value_parser = some_time, requires = "interface", conflicts_with = "captures")]
    duration: Option<Duration>,
}

impl LiveFlags {
    /// Whether an interface is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.interface.is_some()
    }

    /// Opens the interface, if one is wanted.
    pub(super) fn open(&self) -> Result<Option<Live>, Failure> {
        let live = self.interface.as_deref().map(Live::open).transpose();
        live.map_err(|error| match error {
            error @ LiveError::NoInterface { .. } => Failure::Usage(error.to_string()),
            error => Failure::Failed(error.to_string()),
        })
    }

    /// Exports the traffic of an interface until the capture ends.
    #[expect(
        clippy::disallowed_methods,
        reason = "an interface is captured in real time"
    )]
    pub(super) fn read(&self, mut interface: Live, export: &mut Export) -> Result<(), Failure> {
        let start = Instant::now();
        if let Some(name) = &self.interface {
            let end = if self.duration.is_some() {
                ""
            } else {
                "; Ctrl-C ends it"
            };
            print_message(&format!("capturing on {name}{end}"));
        }
        let mut until_look = 0;
        loop {
            if until_look == 0 {
                let is_over = self
                    .duration
                    .is_some_and(|duration| start.elapsed() >= duration);
                if is_over || export.stop.is_asked_for() {
                    break;
                }
                let bytes = export.exporter.statistics().bytes;
                export.look(bytes, interface.dropped());
                until_look = PACKETS_PER_POLL / 16;
            }
            export
                .divide_if_asked()
                .map_err(|error| unwritable(&error))?;
            match interface.next(WAIT) {
                Ok(Some(packet)) => {
                    export
                        .exporter
                        .packet(&packet)
                        .map_err(|error| unwritable(&error))?;
                    until_look -= 1;
                }
                // Flows expire and files are rotated even if no packet arrives.
                Ok(None) => {
                    export
                        .exporter
                        .advance(now_ns())
                        .map_err(|error| unwritable(&error))?;
                    until_look = 0;
                }
                // Packets captured before the interface went down are kept.
                Err(error) => {
                    print_message(&error.to_string());
                    break;
                }
            }
        }
        // Packets captured before the end may still be in the buffer.
        let end_ns = now_ns();
        while let Ok(Some(packet)) = interface.next(Duration::ZERO) {
            if packet.time_ns > end_ns {
                break;
            }
            export
                .exporter
                .packet(&packet)
                .map_err(|error| unwritable(&error))?;
        }
        if interface.dropped() > 0 {
            let dropped = interface.dropped();
            print_message(&format!(
                "{dropped} packets were lost because they arrived too fast"
            ));
        }
        Ok(())
    }
}

/// The time of the system's clock, which packets are stamped with.
#[expect(
    clippy::disallowed_methods,
    reason = "an interface is captured in real time"
)]
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
