//! Traffic sources with a fixed window and a fixed acknowledgment frequency.

use std::time::Duration;

use marline_link::wifi::{WifiConfig, WifiMedium};
use marline_link::{Medium, Packet, Seed, Time};

/// Size of a data packet in bytes, including its IP header.
const DATA_BYTES: u32 = 1500;
/// Size of its UDP payload in bytes.
const PAYLOAD_BYTES: u32 = 1472;
/// Size of an acknowledgment in bytes, including its IP header.
const ACK_BYTES: u32 = 64;
/// Time before the measurement starts.
const WARM_UP: Duration = Duration::from_millis(100);

/// Traffic from station 0 to the last station.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// Packets in flight.
    pub(crate) window: u32,
    /// Whether acknowledgments open the window; otherwise arrivals do, and the queue is never empty.
    pub(crate) windowed: bool,
    /// Packets per acknowledgment; `None` for no acknowledgments.
    pub(crate) ack_every: Option<u32>,
}

impl Source {
    /// Saturated, without acknowledgments.
    pub(crate) const ONE_WAY: Self = Self {
        window: 256,
        windowed: false,
        ack_every: None,
    };

    /// Saturated, with an acknowledgment for every `packets` packets.
    pub(crate) const fn saturated(packets: u32) -> Self {
        Self {
            ack_every: Some(packets),
            ..Self::ONE_WAY
        }
    }

    /// `window` unacknowledged packets, and an acknowledgment for every `packets` packets.
    pub(crate) const fn windowed(window: u32, packets: u32) -> Self {
        Self {
            window,
            windowed: true,
            ack_every: Some(packets),
        }
    }
}

/// Results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Goodput in megabits of UDP payload per second.
    pub(crate) goodput: f64,
    /// Number of dropped packets.
    pub(crate) dropped: u64,
    /// Data packets that arrived after one that was sent later.
    pub(crate) reordered: u64,
}

#[derive(Clone, Copy, Debug)]
enum Body {
    Data(u64),
    Ack(u32),
}

/// Runs `source` for `duration` of virtual time.
pub(crate) fn run(config: &WifiConfig, source: Source, duration: Duration, seed: u64) -> Measured {
    let mut medium: WifiMedium<Body> = WifiMedium::new(config, Seed::new(seed)).unwrap();
    let last = medium.stations() - 1;
    let end = Time::ZERO + duration;
    let begin = Time::ZERO + WARM_UP;
    let mut measured = Measured::default();
    let mut next = 0;
    let mut received: u32 = 0;
    let mut unacknowledged = 0;
    let mut highest = 0;
    let mut now = Time::ZERO;
    // Packets that the sender may send now.
    let mut allowed = u64::from(source.window);
    while now <= end {
        for number in next..next + allowed {
            medium.push(now, 0, last, Packet::new(DATA_BYTES, Body::Data(number)));
        }
        next += std::mem::take(&mut allowed);
        let Some(due) = medium.next_event() else {
            break;
        };
        now = now.max(due);
        while let Some(carried) = medium.pop(now) {
            let arrived = carried.exit.dropped.is_none();
            measured.dropped += u64::from(!arrived);
            match carried.exit.packet.body {
                Body::Data(number) if arrived => {
                    measured.reordered += u64::from(number < highest);
                    highest = highest.max(number);
                    received += u32::from(now >= begin);
                    unacknowledged += 1;
                    if source.ack_every == Some(unacknowledged) {
                        let ack = Packet::new(ACK_BYTES, Body::Ack(unacknowledged));
                        unacknowledged = 0;
                        medium.push(now, last, 0, ack);
                    }
                    allowed += u64::from(!source.windowed);
                }
                Body::Data(_) => allowed += u64::from(!source.windowed),
                Body::Ack(packets) if source.windowed => allowed += u64::from(packets),
                Body::Ack(_) => {}
            }
        }
    }
    let seconds = end.since(begin).as_secs_f64();
    measured.goodput = f64::from(received) * f64::from(PAYLOAD_BYTES) * 8e-6 / seconds;
    measured
}
