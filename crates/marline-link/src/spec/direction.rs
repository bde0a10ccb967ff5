//! The specification of one direction of the wire.

use std::num::NonZeroU64;
use std::time::Duration;

use marline_settings::{Domain, Field, Settings, Share, write_rate};

use super::values::{
    Alternation, Buffer, Burst, DelayRange, DistributionName, QueueKind, ShareRange, Window,
};
use super::{RATE, SpecError};
use crate::MODELS;
use crate::outage::Schedule;
use crate::queue::Isolation;

/// One direction of a wire: queue and rate, then losses, then delay.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionSpec {
    /// Rate in bits per second; `None` for no limit.
    pub rate: Option<u64>,
    /// Standard deviation of the rate in bits per second, of an Ornstein-Uhlenbeck process.
    pub rate_std: u64,
    /// Correlation time of the rate.
    pub rate_tau: Duration,
    /// A file of delivery opportunities in the format of Mahimahi, instead of a rate.
    pub trace: Option<String>,
    /// Where the trace begins; `None` for a place that is random.
    pub trace_start: Option<Duration>,
    /// Whether traces are played once, instead of repeated: delivery ends, and the last delay lasts.
    pub once: bool,
    /// Queue limit. By default one bandwidth-delay product of the wire, at least ten full packets; with
    /// CoDel 1,000 packets; with FQ-CoDel, which counts packets of 1,500 bytes, 10,240 packets; with DualPI2 250 ms.
    pub buffer: Option<Buffer>,
    /// Queueing discipline.
    pub queue: QueueKind,
    /// Among which packets CAKE is fair.
    pub cake_isolation: Isolation,
    /// Whether an acknowledgment in CAKE's queue replaces those of its flow directly before it.
    pub cake_ack_filter: bool,
    /// Bytes that the transmitter adds to each packet. Queue limits do not count them.
    pub overhead: u32,
    /// The smallest frame of the transmitter, in bytes.
    pub mpu: u32,
    /// Whether the transmitter cuts frames into cells of ATM.
    pub atm: bool,
    /// Mean lengths of periods in which the path is clear and blocked, the same in both directions; `None` for always
    /// clear.
    pub blockage: Option<Alternation>,
    /// Share of the rate that is left while the path is blocked.
    pub blockage_rate: Share,
    /// Time between hand-overs, which are at the same times in both directions; `None` for none.
    pub handover: Option<Duration>,
    /// The delays that hand-overs choose from.
    pub handover_delay: DelayRange,
    /// The shares of the rate that hand-overs choose from.
    pub handover_rate: ShareRange,
    /// The time after a hand-over in which packets are lost.
    pub handover_gap: Duration,
    /// One in this many acknowledgments of a flow passes; `None` for all.
    pub ack_thin: Option<NonZeroU64>,
    /// How long an acknowledgment waits for others.
    pub ack_thin_time: Duration,
    /// A file of times and delays, which are added to the delay.
    pub delay_trace: Option<String>,
    /// Whether active queue management marks ECN-capable packets instead of dropping them. DualPI2 and CAKE always do.
    pub ecn: bool,
    /// Longest time that packets with ECT(1) wait unmarked; `None` never marks for delay, except for DualPI2, which
    /// then marks on a ramp from 0.8 to 1.2 ms.
    pub mark: Option<Duration>,
    /// Rate of a policer before the queue in bits per second; `None` for no policer.
    pub policer: Option<u64>,
    /// Burst of the policer, in bytes; by default 100 ms of its rate, at least ten full packets.
    pub policer_burst: Option<u64>,
    /// Rate of a token-bucket shaper before the queue in bits per second; `None` for no shaper.
    pub shaper: Option<u64>,
    /// Bucket of the shaper, in bytes; by default 10 ms of its rate, at least ten full packets.
    pub shaper_burst: Option<u64>,
    /// The shaper's rate within a burst, in bits per second, with a bucket of a full packet; `None` for no limit.
    pub shaper_peak: Option<u64>,
    /// The shaper's queue limit; by default 50 ms. As in `tc-tbf`, a time is how long a packet may wait that arrives
    /// at an empty bucket: the limit is what the rate sends in it, and the bucket.
    pub shaper_buffer: Option<Buffer>,
    /// A [model of the program](crate::MODELS) with its parameters, behind the queue and the rate.
    pub custom: Option<String>,
    /// One-direction delay.
    pub delay: Duration,
    /// Scale of the delay variation; see [`jitter_distribution`](Self::jitter_distribution).
    pub jitter: Duration,
    /// Distribution of the delay.
    pub jitter_distribution: DistributionName,
    /// Correlation time of the delay.
    pub jitter_corr: Duration,
    /// Packets that arrive within this time share a delay.
    pub jitter_batch: Duration,
    /// Whether packets may overtake each other.
    pub reorder: bool,
    /// Share of packets that do not take the delay, and so overtake others (netem's `reorder`).
    pub overtake: Share,
    /// Correlation of the draws for `overtake`. As in netem, it makes overtaking rarer than the share.
    pub overtake_corr: Share,
    /// Share of packets lost at random.
    pub loss: Share,
    /// Mean length of loss bursts; `None` for independent losses.
    pub loss_burst: Option<Burst>,
    /// Fixed length of loss bursts, in packets.
    pub loss_row: Option<NonZeroU64>,
    /// Every n-th packet is lost.
    pub loss_every: Option<NonZeroU64>,
    /// The packets with these numbers, from 0, are lost.
    pub loss_at: Vec<u64>,
    /// Share of packets duplicated.
    pub duplicate: Share,
    /// Share of packets with a bit error.
    pub corrupt: Share,
    /// Largest IP packet in bytes; `None` for no limit.
    pub mtu: Option<u32>,
    /// Periods in which the link is down and drops packets.
    pub outage: Vec<Window>,
    /// Periodic pauses, in which the link holds packets back.
    pub suspend: Option<Schedule>,
}

impl Default for DirectionSpec {
    fn default() -> Self {
        Self {
            rate: None,
            rate_std: 0,
            rate_tau: Duration::from_secs(1),
            trace: None,
            trace_start: Some(Duration::ZERO),
            once: false,
            buffer: None,
            queue: QueueKind::DropTail,
            cake_isolation: Isolation::Triple,
            cake_ack_filter: false,
            overhead: 0,
            mpu: 0,
            atm: false,
            blockage: None,
            blockage_rate: Share::NONE,
            handover: None,
            handover_delay: DelayRange::default(),
            handover_rate: ShareRange {
                least: Share::ALL,
                most: Share::ALL,
            },
            handover_gap: Duration::ZERO,
            ack_thin: None,
            ack_thin_time: Duration::from_millis(10),
            delay_trace: None,
            ecn: false,
            mark: None,
            policer: None,
            policer_burst: None,
            shaper: None,
            shaper_burst: None,
            shaper_peak: None,
            shaper_buffer: None,
            custom: None,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_distribution: DistributionName::Normal,
            jitter_corr: Duration::ZERO,
            jitter_batch: Duration::ZERO,
            reorder: false,
            overtake: Share::NONE,
            overtake_corr: Share::NONE,
            loss: Share::NONE,
            loss_burst: None,
            loss_row: None,
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

impl DirectionSpec {
    /// Whether its rate is limited, by a rate or a trace.
    pub const fn has_rate(&self) -> bool {
        self.rate.is_some() || self.trace.is_some()
    }

    /// Whether its delay is drawn from a distribution. picoquic's distribution has a scale of its own.
    pub(super) fn varies(&self) -> bool {
        !self.jitter.is_zero() || self.jitter_distribution == DistributionName::PicoquicWifi
    }

    fn check_rate_modifiers(&self) -> Result<(), SpecError> {
        let default = Self::default();
        let needs = SpecError::unless;
        let is_cake = self.queue == QueueKind::Cake;
        for (is_set, key) in [
            (
                self.cake_isolation != default.cake_isolation,
                "cake-isolation",
            ),
            (self.cake_ack_filter, "cake-ack-filter"),
        ] {
            needs(!is_set || is_cake, key, "queue=cake")?;
        }
        for (is_set, key) in [
            (is_cake, "queue=cake"),
            (self.overhead != 0, "overhead"),
            (self.mpu != 0, "mpu"),
            (self.atm, "atm"),
            (self.blockage.is_some(), "blockage"),
            (self.handover_rate != default.handover_rate, "handover-rate"),
        ] {
            needs(!is_set || self.rate.is_some(), key, "rate")?;
        }
        needs(
            self.blockage_rate.is_none() || self.blockage.is_some(),
            "blockage-rate",
            "blockage",
        )?;
        for (is_set, key) in [
            (
                self.handover_delay != default.handover_delay,
                "handover-delay",
            ),
            (self.handover_rate != default.handover_rate, "handover-rate"),
            (!self.handover_gap.is_zero(), "handover-gap"),
        ] {
            needs(!is_set || self.handover.is_some(), key, "handover")?;
        }
        if self
            .handover
            .is_some_and(|every| every < Duration::from_millis(1))
        {
            return Err(SpecError::out_of_range("handover", "it", "1ms or more"));
        }
        let has_default_time = self.ack_thin_time == default.ack_thin_time;
        needs(
            has_default_time || self.ack_thin.is_some(),
            "ack-thin-time",
            "ack-thin",
        )
    }

    fn check_shaper(&self) -> Result<(), SpecError> {
        if self.shaper == Some(0) {
            return Err(SpecError::out_of_range("shaper", "0bps", DOWN));
        }
        for (is_set, key) in [
            (self.shaper_burst.is_some(), "shaper-burst"),
            (self.shaper_peak.is_some(), "shaper-peak"),
            (self.shaper_buffer.is_some(), "shaper-buffer"),
        ] {
            SpecError::unless(!is_set || self.shaper.is_some(), key, "shaper")?;
        }
        if let Some(peak) = self.shaper_peak.filter(|peak| Some(*peak) <= self.shaper) {
            let peak = write_rate(peak);
            return Err(SpecError::out_of_range(
                "shaper-peak",
                &peak,
                "above `shaper`",
            ));
        }
        Ok(())
    }

    /// Checks that the keys are consistent.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let default = Self::default();
        let needs = SpecError::unless;
        if self.rate.is_some() && self.trace.is_some() {
            return Err(SpecError::conflict("trace", "rate"));
        }
        if self.rate == Some(0) {
            return Err(SpecError::out_of_range("rate", "0bps", DOWN));
        }
        needs(
            self.rate_std == 0 || self.rate.is_some(),
            "rate-std",
            "rate",
        )?;
        let has_trace = self.trace.is_some() || self.delay_trace.is_some();
        needs(!self.once || has_trace, "once", "trace")?;
        needs(
            self.trace_start == default.trace_start || has_trace,
            "trace-start",
            "trace",
        )?;
        needs(self.buffer.is_none() || self.has_rate(), "buffer", "rate")?;
        needs(
            self.queue == default.queue || self.has_rate(),
            "queue",
            "rate",
        )?;
        let managed = !matches!(self.queue, QueueKind::DropTail | QueueKind::DropHead);
        needs(!self.ecn || managed, "ecn", "queue=codel")?;
        needs(self.mark.is_none() || self.has_rate(), "mark", "rate")?;
        if self.policer == Some(0) {
            return Err(SpecError::out_of_range("policer", "0bps", DOWN));
        }
        needs(
            self.policer_burst.is_none() || self.policer.is_some(),
            "policer-burst",
            "policer",
        )?;
        self.check_shaper()?;
        self.check_rate_modifiers()?;
        if let Some(model) = &self.custom {
            MODELS
                .make(model)
                .map_err(|why| SpecError::new("custom", why))?;
        }
        if !self.jitter_corr.is_zero() && self.jitter_distribution == DistributionName::PicoquicWifi
        {
            return Err(SpecError::conflict(
                "jitter-corr",
                "jitter-law=picoquic-wifi",
            ));
        }
        needs(
            self.overtake_corr.is_none() || !self.overtake.is_none(),
            "overtake-corr",
            "overtake",
        )?;
        if !self.overtake.is_none() {
            if self.varies() {
                return Err(SpecError::conflict("overtake", "jitter"));
            }
            needs(!self.delay.is_zero(), "overtake", "delay")?;
        }
        if self.loss_row.is_some() && self.loss_burst.is_some() {
            return Err(SpecError::conflict("loss-row", "loss-burst"));
        }
        if self.loss == Share::ALL && self.loss_burst.is_some() {
            return Err(SpecError::out_of_range(
                "loss",
                "100%",
                "below 100% in bursts",
            ));
        }
        Ok(())
    }
}

/// The range of rates.
const DOWN: &str = "above 0; use `outage` for a link that is down";

/// The field `field` of a direction.
macro_rules! key {
    ($name:literal, $field:ident: $domain:expr, $about:literal) => {
        &Field::new($name, $domain, $about, |direction: &mut DirectionSpec| {
            &mut direction.$field
        })
    };
}

/// All keys of a direction. `rtt` sets the delay of both.
pub(super) const KEYS: Settings<DirectionSpec> = &[
    key!("rate", rate: RATE.or("none"), "bits per second"),
    key!("rate-std", rate_std: RATE, "standard deviation of a varying rate"),
    key!("rate-tau", rate_tau: Domain::TIME, "correlation time of the rate"),
    key!("trace", trace: Domain::text("a file").or("none"), "delivery opportunities in the format of Mahimahi"),
    key!("trace-start", trace_start: Domain::TIME.or("random"), "where the trace begins; random is a place of the seed, the same for both directions if their traces are of one length"),
    key!("once", once: Domain::SWITCH, "traces are not repeated: delivery ends with it, its last delay lasts"),
    key!(
        "buffer",
        buffer: Domain::text("a queue limit, as 45kB, 100p (packets), 50ms (at the rate) or 1bdp").or("none"),
        "queue limit"
    ),
    key!("queue", queue: Domain::words::<QueueKind>(), "queueing discipline"),
    key!("cake-isolation", cake_isolation: Domain::words::<Isolation>(), "whom the queue CAKE is fair to"),
    key!(
        "cake-ack-filter",
        cake_ack_filter: Domain::SWITCH,
        "an acknowledgment in the queue CAKE replaces those of its flow directly before it"
    ),
    key!("overhead", overhead: Domain::bytes(0, 1000), "bytes that the transmitter adds to each packet"),
    key!("mpu", mpu: Domain::bytes(0, 1500), "the smallest frame of the transmitter"),
    key!("atm", atm: Domain::SWITCH, "the transmitter cuts frames into cells of ATM"),
    key!(
        "blockage",
        blockage: Domain::text("mean lengths, as 5s/300ms (clear/blocked)").or("none"),
        "periods in which something blocks the path of both directions"
    ),
    key!("blockage-rate", blockage_rate: Domain::SHARE, "share of the rate that is left while the path is blocked"),
    key!("handover", handover: Domain::TIME.or("none"), "time between hand-overs of both directions"),
    key!(
        "handover-delay",
        handover_delay: Domain::text("a range, as 0ms..6ms"),
        "delays that hand-overs add, each until the next"
    ),
    key!(
        "handover-rate",
        handover_rate: Domain::text("a range, as 20%..100%"),
        "shares of the rate that hand-overs choose, each until the next"
    ),
    key!("handover-gap", handover_gap: Domain::TIME, "time after a hand-over in which packets are lost"),
    key!(
        "ack-thin",
        ack_thin: Domain::count(1).or("none"),
        "one in this many acknowledgments of a flow passes; packets of 100 bytes or fewer count as such"
    ),
    key!("ack-thin-time", ack_thin_time: Domain::TIME, "how long an acknowledgment waits for others"),
    key!("ecn", ecn: Domain::SWITCH, "the queue marks ECN-capable packets instead of dropping them"),
    key!("mark", mark: Domain::TIME.or("none"), "how long packets with ECT(1) may wait before the queue marks them"),
    key!("policer", policer: RATE.or("none"), "the rate of a policer, which drops what exceeds it"),
    key!("policer-burst", policer_burst: Domain::SIZE.or("none"), "what the policer lets pass at once"),
    key!("shaper", shaper: RATE.or("none"), "the rate of a token-bucket shaper, which holds back what exceeds it"),
    key!("shaper-burst", shaper_burst: Domain::SIZE.or("none"), "what the shaper lets pass at once"),
    key!("shaper-peak", shaper_peak: RATE.or("none"), "the rate of the shaper within a burst"),
    key!(
        "shaper-buffer",
        shaper_buffer: Domain::text("a queue limit, as 45kB, 100p (packets), 50ms (at the rate, and the burst) or 1bdp").or("none"),
        "the queue limit of the shaper"
    ),
    key!("custom", custom: Domain::text("a model that the program adds, as name(key=value)").or("none"), "a packet model of the program"),
    key!("delay", delay: Domain::TIME, "one-direction delay"),
    key!(
        "delay-trace",
        delay_trace: Domain::text("a file of times and delays in ms").or("none"),
        "delays over time, added to the delay"
    ),
    key!("jitter", jitter: Domain::TIME, "scale of the delay variation"),
    key!(
        "jitter-law",
        jitter_distribution: Domain::text("normal, uniform, pareto, paretonormal, exponential, picoquic-wifi or table:FILE"),
        "distribution of the delay"
    ),
    key!("jitter-corr", jitter_corr: Domain::TIME, "correlation time of the delay"),
    key!("jitter-batch", jitter_batch: Domain::TIME, "packets that arrive within this time share a delay"),
    key!("reorder", reorder: Domain::SWITCH, "packets may overtake each other"),
    key!("overtake", overtake: Domain::SHARE, "share of packets that overtake others, because they do not take the delay"),
    key!("overtake-corr", overtake_corr: Domain::SHARE, "correlation of overtaking packets, as netem defines it"),
    key!("loss", loss: Domain::SHARE, "share of packets lost"),
    key!("loss-burst", loss_burst: Domain::text("a length, as 3p (packets) or 20ms").or("none"), "mean length of loss bursts"),
    key!(
        "loss-row",
        loss_row: Domain::count(1).or("none"),
        "packets lost in a row, always this many unless no packet arrives for 100 ms"
    ),
    key!("loss-every", loss_every: Domain::count(1).or("none"), "every n-th packet is lost"),
    key!("loss-at", loss_at: Domain::text("numbers, as 3+7").or("none"), "numbers of lost packets, from 0"),
    key!("duplicate", duplicate: Domain::SHARE, "share of packets duplicated"),
    key!("corrupt", corrupt: Domain::SHARE, "share of packets with a bit error"),
    key!("mtu", mtu: Domain::bytes(0, u32::MAX as u64).or("none"), "the largest IP packet"),
    key!("outage", outage: Domain::text("periods, as 2s..2.5s+7s..8s").or("none"), "periods in which the link drops packets"),
    key!(
        "suspend",
        suspend: Domain::text("pauses, as 100ms..250ms/3s (length/interval)").or("none"),
        "pauses that hold packets back"
    ),
];
