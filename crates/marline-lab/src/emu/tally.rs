//! What the network did to the packets.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use marline_link::DropReason;
use marline_report::units;
use serde_json::{Value, json};

use super::Lateness;

/// What became of the packets that one host sent.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Packets the host sent.
    pub sent: u64,
    /// Bytes in them, from the IP header on.
    pub sent_bytes: u64,
    /// Packets that arrived; more than were sent if links duplicate.
    pub arrived: u64,
    /// Bytes in them.
    pub arrived_bytes: u64,
    /// Packets that were lost, and why.
    pub dropped: BTreeMap<DropReason, u64>,
}

impl Tally {
    /// Packets that were lost.
    pub fn lost(&self) -> u64 {
        self.dropped.values().sum()
    }

    /// With the key of each reason in snake case.
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

/// What an emulation did, and how true it was to its model.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What became of the packets of each host, with its name; in the order of the plan.
    pub hosts: Vec<(String, Tally)>,
    /// How long it ran.
    pub duration: Duration,
    /// How late packets were handed over.
    pub lateness: Lateness,
    /// Whether the driver ran before everything else on the machine (`SCHED_FIFO`).
    pub realtime: bool,
    /// Packets that hosts sent and the network does not know: anything but IPv4.
    pub ignored: u64,
    /// Packets that a host did not take.
    pub refused: u64,
}

impl Report {
    /// What became of the packets of one host; `None` if it is not one.
    pub fn tally(&self, host: &str) -> Option<&Tally> {
        let mut hosts = self.hosts.iter();
        hosts.find_map(|(name, tally)| (name == host).then_some(tally))
    }

    /// Whether 99 % of the packets were handed over within `bound` of the time the model says. If not,
    /// the machine was too slow or too busy, and the run says nothing about the link.
    pub fn is_valid(&self, bound: Duration) -> bool {
        self.lateness.percentile(990) <= bound
    }

    /// Times in seconds.
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

/// "32,962 packets (49.4 MB), of which 17 lost: 17 queue full".
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = units::bytes(self.sent_bytes as f64);
        write!(f, "{} packets ({bytes}), ", units::count(self.sent))?;
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

/// A line a host, and one about lateness.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, tally) in &self.hosts {
            writeln!(f, "from {name}: {tally}")?;
        }
        let late = |per_mille| units::seconds(self.lateness.percentile(per_mille).as_secs_f64());
        write!(
            f,
            "late by {} (median), {} (99 %), at most {}{}",
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
