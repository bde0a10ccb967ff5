//! Statistics of an emulation: packets and lateness.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use marline_link::DropReason;
use marline_report::units;
use serde_json::{Value, json};

use super::Lateness;

/// Counters of the packets that one host sent, by outcome.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets that the host sent.
    pub sent: u64,
    /// Bytes in them, from the IP header on.
    pub sent_bytes: u64,
    /// Packets that arrived; more than were sent if links duplicate.
    pub arrived: u64,
    /// Bytes in them.
    pub arrived_bytes: u64,
    /// Packets that were lost, by reason.
    pub dropped: BTreeMap<DropReason, u64>,
}

impl Tally {
    /// The number of lost packets.
    pub fn lost(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// As JSON, with the reasons in snake case.
    pub fn to_json(&self) -> Value {
        let dropped: serde_json::Map<_, _> = self
            .dropped
            .iter()
            .map(|(reason, count)| (reason.name().replace(' ', "_"), Value::from(*count)))
            .collect();
        json!({
            "packets": self.sent,
            "bytes": self.sent_bytes,
            "arrived_packets": self.arrived,
            "arrived_bytes": self.arrived_bytes,
            "dropped_packets": dropped,
        })
    }
}

/// The statistics of an emulation, and how closely it followed its model.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The packets of each host, with its name; in the order of the plan.
    pub hosts: Vec<(String, Tally)>,
    /// The duration of the emulation.
    pub duration: Duration,
    /// The lateness of delivered packets.
    pub lateness: Lateness,
    /// Whether the driver ran with real-time priority (`SCHED_FIFO`).
    pub realtime: bool,
    /// Packets of hosts that are not IPv4, which the network ignores.
    pub ignored: u64,
    /// Packets that the destination host did not accept.
    pub refused: u64,
}

impl Report {
    /// The packets of one host; `None` if there is no such host.
    pub fn tally(&self, host: &str) -> Option<&Tally> {
        let mut hosts = self.hosts.iter();
        hosts.find_map(|(name, tally)| (name == host).then_some(tally))
    }

    /// Whether 99 % of the packets were delivered within `bound` of their time in the model. If not, the
    /// machine was too slow or too busy, and the run is not evidence about the link.
    pub fn is_valid(&self, bound: Duration) -> bool {
        self.lateness.percentile(990) <= bound
    }

    /// As JSON, with times in seconds.
    pub fn to_json(&self) -> Value {
        let late = |per_mille| self.lateness.percentile(per_mille).as_secs_f64();
        let hosts: serde_json::Map<_, _> = self
            .hosts
            .iter()
            .map(|(name, tally)| (name.clone(), tally.to_json()))
            .collect();
        json!({
            "duration_s": self.duration.as_secs_f64(),
            "from": hosts,
            "lateness": {
                "packets": self.lateness.count(),
                "p50_s": late(500),
                "p99_s": late(990),
                "p999_s": late(999),
                "max_s": self.lateness.max().as_secs_f64(),
            },
            "realtime": self.realtime,
            "ignored_packets": self.ignored,
            "refused_packets": self.refused,
        })
    }
}

/// Such as "32,962 packets (49.4 MB), of which 17 lost: 17 queue full".
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = units::bytes(self.sent_bytes as f64);
        let noun = if self.sent == 1 { "packet" } else { "packets" };
        write!(f, "{} {noun} ({bytes}), ", units::count(self.sent))?;
        if self.dropped.is_empty() {
            return f.write_str("none lost");
        }
        write!(f, "{} lost", units::count(self.lost()))?;
        for (index, (reason, count)) in self.dropped.iter().enumerate() {
            let mark = if index == 0 { ':' } else { ',' };
            write!(f, "{mark} {reason} {}", units::count(*count))?;
        }
        Ok(())
    }
}

/// One line per host, and one about lateness.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, tally) in &self.hosts {
            writeln!(f, "from {name}: {tally}")?;
        }
        let late = |per_mille| units::seconds(self.lateness.percentile(per_mille).as_secs_f64());
        write!(
            f,
            "packets late by {} (median), {} (99 %), at most {}{}",
            late(500),
            late(990),
            units::seconds(self.lateness.max().as_secs_f64()),
            if self.realtime {
                ""
            } else {
                "; without real-time priority"
            }
        )
    }
}
