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
            | Self::OverloadDelay => "ms",
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
            | Self::AcksPassed => "%",
            Self::Goodput
            | Self::GoodputDeviation
            | Self::Payload
            | Self::PayloadAcknowledged
            | Self::BurstRate => "Mb/s",
            Self::LossRun | Self::BufferPackets | Self::AtOnce | Self::Drops | Self::Marks => {
                "packets"
            }
            Self::Buffer => "kB",
            Self::HopShare => "",
        }
    }

    /// The measurement that yields it.
    pub(super) const fn probe(self) -> Probe {
        match self {
            Self::RttMedian | Self::RttMean | Self::RttDeviation | Self::RttRetried => Probe::Pings,
            Self::Goodput | Self::GoodputDeviation | Self::Payload => Probe::Download,
            Self::PayloadAcknowledged => Probe::AcknowledgedDownload,
            Self::LossUp | Self::LossDown | Self::LossRun | Self::Arrived | Self::Corrupted => {
                Probe::Trickle
            }
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
        }
    }
}
