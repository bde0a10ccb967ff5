//! The measurable properties of links.

use super::probe::Probe;

/// A property of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Quantity {
    /// The median round-trip time of pings on an idle link.
    RttMedian,
    /// Their mean.
    RttMean,
    /// Their standard deviation.
    RttDeviation,
    /// The share of pings that took 8 ms longer, as a radio block was retransmitted.
    RttRetried,
    /// The throughput of an overloaded link from the server to the client, in bits of IP packets.
    Goodput,
    /// Its standard deviation over windows of one second.
    GoodputDeviation,
    /// The same in bits of UDP payload, with full packets.
    Payload,
    /// The same while the client acknowledges every second packet.
    PayloadAcknowledged,
    /// Loss ratio from the client to the server with short queues.
    LossUp,
    /// Loss ratio from the server to the client with short queues.
    LossDown,
    /// The mean length of a run of losses.
    LossRun,
    /// The largest queue from the server to the client.
    Buffer,
    /// The same in packets of 1,517 bytes.
    BufferPackets,
    /// The queueing delay of a packet at the end of a full buffer.
    BufferTime,
    /// Packets of 500 bytes that leave at once, of many that are sent at once.
    AtOnce,
    /// The rate at which the first ten of the others leave, in bits of IP packets.
    BurstRate,
    /// Of five flows that each send as fast as the link, the share of the one that has a host of its own at both ends,
    /// while the others are from one host to hosts of their own.
    LoneShare,
    /// The mean one-way delay of small packets of a sixth flow, sent now and then beside those.
    SparseDelay,
    /// The mean one-way delay of full packets that arrive at random (Poisson) at 80 % of the rate.
    RandomDelay,
    /// The share of them that is lost.
    RandomLoss,
    /// The mean one-way delay of full packets at constant intervals and 105 % of the rate.
    OverloadDelay,
    /// The share of them that is lost.
    OverloadLoss,
    /// Packets that queue management drops in the first ten seconds of twice the rate.
    Drops,
    /// The share of packets with ECT(1) that a queue marks, of those that arrive at random at 80 % of the rate.
    RandomMarked,
    /// Packets with ECT(1) that arrive with a mark of queue management in the first ten seconds of twice the rate.
    Marks,
    /// Packets from the server that arrive, by those that were sent.
    Arrived,
    /// The share of those that arrive with a bit error.
    Corrupted,
    /// The share of pauses, half of which are 1 s shorter and half 1 s longer than a NAT keeps mappings, after which the
    /// client has another port.
    Rebound,
    /// The share of the packets from the server at the end of these pauses that the NAT drops.
    Unmapped,
    /// The share of acknowledgments that arrive, of 2,000 a second.
    AcksPassed,
    /// The goodput divided by that of a single hop of the same radio.
    HopShare,
    /// The gain of a window of 256 packets when every tenth packet is acknowledged instead of every second.
    FewerAcks,
    /// The share of packets from the server that arrive without the delay.
    Ahead,
    /// The share of packets from the server that arrive after one that was sent later (RFC 4737, section 3.3).
    Reordered,
    /// The throughput of so many stations of a Wi-Fi channel that always have full packets to send, together, in bits of
    /// UDP payload.
    Saturated(Stations),
    /// The mean bit rate of a video.
    VideoRate,
    /// Its quality for each segment: bit rates, less their changes, less stalls at the best bit rate.
    VideoQuality,
    /// The time until its first segment has arrived.
    VideoStart,
    /// How often it stalled.
    VideoStalls,
    /// For how long.
    VideoStalled,
    /// How often its bit rate changed.
    VideoSwitches,
    /// The median time from sending a frame of a call to its arrival.
    CallDelay,
    /// The share of frames of a call that were not complete by the deadline.
    CallLate,
    /// The share of frames that were never complete.
    CallLost,
}

/// The number of stations of a Wi-Fi channel, from 1 to 10.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Stations(u8);

impl Stations {
    /// Names of the throughput of 1 to 10 stations.
    const NAMES: [&'static str; 10] = [
        "throughput of 1 station",
        "throughput of 2 stations",
        "throughput of 3 stations",
        "throughput of 4 stations",
        "throughput of 5 stations",
        "throughput of 6 stations",
        "throughput of 7 stations",
        "throughput of 8 stations",
        "throughput of 9 stations",
        "throughput of 10 stations",
    ];

    /// # Panics
    /// `count` is out of range, while compiling.
    pub(super) const fn new(count: u8) -> Self {
        assert!(count >= 1 && count as usize <= Self::NAMES.len());
        Self(count)
    }

    pub(super) const fn count(self) -> u8 {
        self.0
    }

    const fn name(self) -> &'static str {
        Self::NAMES[self.0 as usize - 1]
    }
}

/// A metric of outcomes of experiments, and the factor to the unit of a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) name: &'static str,
    pub(super) factor: f64,
}

impl Metric {
    const fn new(name: &'static str, factor: f64) -> Self {
        Self { name, factor }
    }
}

impl Quantity {
    /// Its name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RttMedian => "RTT median",
            Self::RttMean => "RTT mean",
            Self::RttDeviation => "RTT std",
            Self::RttRetried => "RTT 8 ms longer",
            Self::Goodput => "goodput",
            Self::GoodputDeviation => "goodput std of 1 s",
            Self::Payload => "goodput of payload",
            Self::PayloadAcknowledged => "goodput of payload, ACK for 2",
            Self::LossUp => "loss up",
            Self::LossDown => "loss down",
            Self::LossRun => "losses in a row",
            Self::Buffer => "buffer",
            Self::BufferPackets => "buffer of 1,517-byte packets",
            Self::BufferTime => "delay of a full buffer",
            Self::AtOnce => "500-byte packets at once",
            Self::BurstRate => "rate in a burst",
            Self::LoneShare => "share of a lone host",
            Self::SparseDelay => "delay of a sparse flow",
            Self::RandomDelay => "delay at 80 % load",
            Self::RandomLoss => "loss at 80 % load",
            Self::OverloadDelay => "delay at 105 % load",
            Self::OverloadLoss => "loss at 105 % load",
            Self::Drops => "dropped in 10 s at 200 % load",
            Self::RandomMarked => "marked at 80 % load",
            Self::Marks => "marked in 10 s at 200 % load",
            Self::Arrived => "arrived of sent packets",
            Self::Corrupted => "with a bit error",
            Self::Rebound => "pauses with a NAT rebinding",
            Self::Unmapped => "without a NAT mapping",
            Self::AcksPassed => "acknowledgments that pass",
            Self::HopShare => "goodput against one hop",
            Self::FewerAcks => "gain of ACK for 10 over 2",
            Self::Ahead => "packets without the delay",
            Self::Reordered => "reordered packets",
            Self::Saturated(stations) => stations.name(),
            Self::VideoRate => "mean bit rate of a video",
            Self::VideoQuality => "quality of a video",
            Self::VideoStart => "start of a video",
            Self::VideoStalls => "stalls of a video",
            Self::VideoStalled => "length of its stalls",
            Self::VideoSwitches => "changes of its bit rate",
            Self::CallDelay => "delay of frames, median",
            Self::CallLate => "late frames",
            Self::CallLost => "lost frames",
        }
    }

    /// Its unit.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Self::RttMedian
            | Self::RttMean
            | Self::RttDeviation
            | Self::BufferTime
            | Self::SparseDelay
            | Self::RandomDelay
            | Self::OverloadDelay
            | Self::CallDelay => "ms",
            Self::RttRetried
            | Self::LossUp
            | Self::LossDown
            | Self::FewerAcks
            | Self::LoneShare
            | Self::RandomLoss
            | Self::OverloadLoss
            | Self::RandomMarked
            | Self::Arrived
            | Self::Corrupted
            | Self::Rebound
            | Self::Unmapped
            | Self::AcksPassed
            | Self::Ahead
            | Self::Reordered
            | Self::CallLate
            | Self::CallLost => "%",
            Self::Goodput
            | Self::GoodputDeviation
            | Self::Payload
            | Self::PayloadAcknowledged
            | Self::BurstRate
            | Self::Saturated(_)
            | Self::VideoRate
            | Self::VideoQuality => "Mb/s",
            Self::LossRun | Self::BufferPackets | Self::AtOnce | Self::Drops | Self::Marks => {
                "packets"
            }
            Self::Buffer => "kB",
            Self::VideoStart | Self::VideoStalled => "s",
            Self::HopShare | Self::VideoStalls | Self::VideoSwitches => "",
        }
    }

    /// The measurement that yields it.
    pub(super) const fn probe(self) -> Probe {
        match self {
            Self::RttMedian | Self::RttMean | Self::RttDeviation | Self::RttRetried => Probe::Pings,
            Self::Goodput | Self::GoodputDeviation | Self::Payload => Probe::Download,
            Self::PayloadAcknowledged => Probe::AcknowledgedDownload,
            Self::LossUp
            | Self::LossDown
            | Self::LossRun
            | Self::Arrived
            | Self::Corrupted
            | Self::Ahead
            | Self::Reordered => Probe::Trickle,
            Self::Rebound | Self::Unmapped => Probe::Pauses,
            Self::Buffer | Self::BufferTime | Self::AtOnce | Self::BurstRate => {
                Probe::Burst { bytes: 500 }
            }
            Self::BufferPackets => Probe::Burst { bytes: 1517 },
            Self::LoneShare | Self::SparseDelay => Probe::Crowd,
            Self::RandomDelay | Self::RandomLoss | Self::RandomMarked => Probe::Random,
            Self::OverloadDelay | Self::OverloadLoss => Probe::Overload,
            Self::Drops | Self::Marks => Probe::Flood,
            Self::AcksPassed => Probe::Acks,
            Self::HopShare => Probe::Hops,
            Self::FewerAcks => Probe::Window,
            Self::Saturated(stations) => Probe::Saturation(stations),
            Self::VideoRate
            | Self::VideoQuality
            | Self::VideoStart
            | Self::VideoStalls
            | Self::VideoStalled
            | Self::VideoSwitches
            | Self::CallDelay
            | Self::CallLate
            | Self::CallLost => Probe::Experiment,
        }
    }

    /// Quantities that are metrics of experiments.
    pub(super) const OF_EXPERIMENTS: [(Self, Metric); 9] = [
        (Self::VideoRate, Metric::new("video_bitrate_mbps", 1.0)),
        (Self::VideoQuality, Metric::new("video_quality_mbps", 1.0)),
        (Self::VideoStart, Metric::new("video_startup_s", 1.0)),
        (Self::VideoStalls, Metric::new("video_stalls", 1.0)),
        (Self::VideoStalled, Metric::new("video_stalled_s", 1.0)),
        (Self::VideoSwitches, Metric::new("video_switches", 1.0)),
        (Self::CallDelay, Metric::new("call_delay_median_ms", 1.0)),
        (Self::CallLate, Metric::new("call_late_ratio", 100.0)),
        (Self::CallLost, Metric::new("call_lost_ratio", 100.0)),
    ];
}
