//! One direction of the wired part.

use std::num::NonZeroU64;
use std::time::Duration;

use super::key::{Key, Rate, Size, Value};
use super::units::Share;
use super::values::{Buffer, Burst, LawName, QueueKind, Window};
use super::{Problem, SpecError};
use crate::outage::Schedule;

/// One direction of a wire: a queue and a rate, then losses, then delay.
#[derive(Clone, Debug, PartialEq)]
pub struct Way {
    /// Bits per second; none for no limit.
    pub rate: Option<u64>,
    /// Standard deviation of the rate in bits per second, as an Ornstein-Uhlenbeck process has it.
    pub rate_std: u64,
    /// How long the rate remembers what it was.
    pub rate_tau: Duration,
    /// A file of delivery opportunities, as Mahimahi writes them, instead of a rate.
    pub trace: Option<String>,
    /// Whether the link ends with the trace, instead of repeating it.
    pub once: bool,
    /// What may wait for its turn. None for one bandwidth-delay product of the wire, at least ten full packets; or
    /// 1,000 packets with CoDel, 10,240 with FQ-CoDel, which counts in packets of 1,500 bytes.
    pub buffer: Option<Buffer>,
    /// Who waits, who goes, who is dropped.
    pub queue: QueueKind,
    /// Whether the queue's management marks packets that are ECN-capable, instead of dropping them.
    pub ecn: bool,
    /// How long a packet is under way.
    pub delay: Duration,
    /// How much the delay varies; see [`jitter_law`](Self::jitter_law).
    pub jitter: Duration,
    /// How the delay is distributed.
    pub jitter_law: LawName,
    /// Over which time delays resemble each other.
    pub jitter_corr: Duration,
    /// Packets that come within this time share a delay.
    pub jitter_batch: Duration,
    /// Whether packets overtake each other.
    pub reorder: bool,
    /// What is lost at random.
    pub loss: Share,
    /// How long losses last; none if each packet is lost for itself.
    pub loss_burst: Option<Burst>,
    /// Every so many packets one is lost.
    pub loss_every: Option<NonZeroU64>,
    /// The packets of these numbers are lost, from 0.
    pub loss_at: Vec<u64>,
    /// What comes twice.
    pub duplicate: Share,
    /// What gets a bit flipped.
    pub corrupt: Share,
    /// The largest IP packet in bytes; none for no limit.
    pub mtu: Option<u32>,
    /// When the link is off, and loses what comes: from, to.
    pub outage: Vec<Window>,
    /// When the link pauses, and keeps what comes.
    pub suspend: Option<Schedule>,
}

impl Default for Way {
    fn default() -> Self {
        Self {
            rate: None,
            rate_std: 0,
            rate_tau: Duration::from_secs(1),
            trace: None,
            once: false,
            buffer: None,
            queue: QueueKind::DropTail,
            ecn: false,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_law: LawName::Normal,
            jitter_corr: Duration::ZERO,
            jitter_batch: Duration::ZERO,
            reorder: false,
            loss: Share::NONE,
            loss_burst: None,
            loss_every: None,
            loss_at: Vec::new(),
            duplicate: Share::NONE,
            corrupt: Share::NONE,
            mtu: None,
            outage: Vec::new(),
            suspend: None,
        }
    }
}

impl Way {
    /// Whether it has a rate, be it a trace, so that packets wait.
    pub const fn has_rate(&self) -> bool {
        self.rate.is_some() || self.trace.is_some()
    }

    pub(super) fn check(&self) -> Result<(), SpecError> {
        let default = Self::default();
        let needs = |holds: bool, key, other| {
            if holds {
                Ok(())
            } else {
                Err(Problem::Needs { key: other }.at(key))
            }
        };
        if self.rate.is_some() && self.trace.is_some() {
            return Err(Problem::Conflict { with: "rate" }.at("trace"));
        }
        if self.rate == Some(0) {
            let problem = Problem::out_of_range("0bps", "above 0; a link that is off has `outage`");
            return Err(problem.at("rate"));
        }
        needs(
            self.rate_std == 0 || self.rate.is_some(),
            "rate-std",
            "rate",
        )?;
        needs(!self.once || self.trace.is_some(), "once", "trace")?;
        needs(self.buffer.is_none() || self.has_rate(), "buffer", "rate")?;
        needs(
            self.queue == default.queue || self.has_rate(),
            "queue",
            "rate",
        )?;
        let managed = !matches!(self.queue, QueueKind::DropTail | QueueKind::DropHead);
        needs(!self.ecn || managed, "ecn", "queue=codel")?;
        if !self.jitter_corr.is_zero() && self.jitter_law == LawName::PicoquicWifi {
            return Err(Problem::Conflict {
                with: "jitter-law=picoquic-wifi",
            }
            .at("jitter-corr"));
        }
        if self.loss == Share::ALL && self.loss_burst.is_some() {
            return Err(Problem::out_of_range("100%", "below 100% in bursts").at("loss"));
        }
        Ok(())
    }
}

macro_rules! key {
    ($name:literal, $field:ident, $help:literal) => {
        Key {
            name: $name,
            help: $help,
            set: |way: &mut Way, text| {
                way.$field = Value::read(text)?;
                Ok(())
            },
            show: |way| way.$field.write(),
        }
    };
}

/// All keys of a direction; `rtt` is the delay of both.
pub(super) const KEYS: &[Key<Way>] = &[
    Key {
        name: "rate",
        help: "bits per second: bps, kbps, mbps, gbps",
        set: |way, text| {
            way.rate = Option::<Rate>::read(text)?.map(|rate| rate.0);
            Ok(())
        },
        show: |way| way.rate.map(Rate).write(),
    },
    Key {
        name: "rate-std",
        help: "standard deviation of a rate that varies",
        set: |way, text| {
            way.rate_std = Rate::read(text)?.0;
            Ok(())
        },
        show: |way| Rate(way.rate_std).write(),
    },
    key!(
        "rate-tau",
        rate_tau,
        "how long the rate remembers: ns, us, ms, s"
    ),
    key!(
        "trace",
        trace,
        "a file of delivery opportunities, as Mahimahi writes them"
    ),
    key!("once", once, "on: the link ends with the trace"),
    key!(
        "buffer",
        buffer,
        "what may wait: 45kB, 100p (packets), 50ms (at the rate), 1bdp"
    ),
    key!("queue", queue, "droptail, drophead, codel, fq-codel or red"),
    key!("ecn", ecn, "on: the queue marks before it drops"),
    key!("delay", delay, "one way"),
    key!("jitter", jitter, "how much the delay varies"),
    key!(
        "jitter-law",
        jitter_law,
        "normal, uniform, pareto, paretonormal, exponential, picoquic-wifi or table:FILE"
    ),
    key!(
        "jitter-corr",
        jitter_corr,
        "over which time delays resemble each other"
    ),
    key!(
        "jitter-batch",
        jitter_batch,
        "packets that come within this time share a delay"
    ),
    key!("reorder", reorder, "on: packets overtake each other"),
    key!("loss", loss, "share that is lost: 1%"),
    key!(
        "loss-burst",
        loss_burst,
        "how long losses last: 3p (packets) or 20ms"
    ),
    key!(
        "loss-every",
        loss_every,
        "every so many packets one is lost"
    ),
    key!("loss-at", loss_at, "packets that are lost, from 0: 3+7"),
    key!("duplicate", duplicate, "share that comes twice"),
    key!("corrupt", corrupt, "share that gets a bit flipped"),
    Key {
        name: "mtu",
        help: "the largest IP packet: 1400B",
        set: |way, text| {
            let bytes = Option::<Size>::read(text)?.map(|size| u32::try_from(size.0));
            way.mtu = bytes
                .transpose()
                .map_err(|_| Problem::out_of_range(text, "below 4 GiB"))?;
            Ok(())
        },
        show: |way| way.mtu.map(|bytes| Size(bytes.into())).write(),
    },
    key!(
        "outage",
        outage,
        "when it is off, and loses what comes: 2s..2.5s+7s..8s"
    ),
    key!(
        "suspend",
        suspend,
        "pauses that keep what comes: 100ms..250ms/3s, of that length, that often"
    ),
];
