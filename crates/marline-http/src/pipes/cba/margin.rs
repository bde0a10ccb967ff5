//! The margin for the queue of a pipe, as an M/D/1 queue (eqs. 6 to 8).

use marline::settings::{Named, Word};

/// The unit of the queue's length where it is compared with bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MarginUnit {
    /// Packets of the mean size.
    #[default]
    Bytes,
    /// The number of packets as it is: as written in eq. 8, where the units differ.
    Packets,
}

impl Named for MarginUnit {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "bytes",
            about: "Packets times their mean size",
            value: Self::Bytes,
        },
        Word {
            name: "packets",
            about: "The number of packets (eq. 8 as written)",
            value: Self::Packets,
        },
    ];
}

/// The arrivals at a pipe, and the rate at which it serves them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PipeLoad {
    /// BA_j: bytes that it can take.
    pub available: i64,
    /// Lambda: packets that arrive for it in a second.
    pub arrival_pps: f64,
    /// Mu: packets that it serves in a second.
    pub service_pps: f64,
    /// The mean size of a packet in bytes.
    pub packet_bytes: f64,
    /// Beta: the multiple of the mean queue that is kept free.
    pub beta: f64,
    /// The unit of the queue.
    pub unit: MarginUnit,
}

/// The queue of a pipe, and the capacity left. If more arrives at a pipe than it serves, only its
/// [utilization](Self::utilization) is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Rho = lambda / mu.
    pub utilization: f64,
    /// E\[W\]: mean wait of a packet in seconds (eq. 6).
    pub wait_s: Option<f64>,
    /// L_q: mean length of the queue in packets (eq. 7).
    pub queue_packets: Option<f64>,
    /// Alpha = BA - beta * L_q (eq. 8).
    pub alpha: Option<f64>,
}

impl Margin {
    /// Whether the pipe may take another object: alpha is above 0.
    pub fn is_usable(&self) -> bool {
        self.alpha.is_some_and(|alpha| alpha > 0.0)
    }
}

/// The margin of a pipe.
pub fn margin(load: PipeLoad) -> Margin {
    let utilization = match load.arrival_pps > 0.0 {
        true => load.arrival_pps / load.service_pps,
        false => 0.0,
    };
    // Not a number if both rates are 0.
    if utilization.is_nan() || utilization >= 1.0 {
        return Margin {
            utilization,
            wait_s: None,
            queue_packets: None,
            alpha: None,
        };
    }
    let wait_s = match utilization > 0.0 {
        true => utilization / (2.0 * load.service_pps * (1.0 - utilization)),
        false => 0.0,
    };
    let queue_packets = load.arrival_pps * wait_s;
    let unit = match load.unit {
        MarginUnit::Bytes => load.packet_bytes,
        MarginUnit::Packets => 1.0,
    };
    Margin {
        utilization,
        wait_s: Some(wait_s),
        queue_packets: Some(queue_packets),
        alpha: Some(load.available as f64 - load.beta * queue_packets * unit),
    }
}
