//! Background TCP flows, and their implementation in each backend.

use std::time::Duration;

use marline::Profile;
use marline::congestion::Algorithm;
use serde::{Serialize, Serializer};

use super::{BackendKind, Direction, EndpointSettings};

/// TCP flows that always have data to send.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpFlows {
    /// The number of flows.
    pub count: usize,
    /// The congestion controller of both ends.
    pub cc: TcpController,
    /// The direction of their bytes; `Down` is to the host that opens them.
    pub direction: Direction,
    /// Each begins at a random time within this span after the start of the background traffic.
    #[serde(serialize_with = "super::model::seconds")]
    pub spread: Duration,
    /// Largest sending rate of each, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<u64>,
    /// Their implementation.
    pub run_by: TcpRunner,
}

impl TcpFlows {
    /// The settings of a QUIC flow that stands in for one of these.
    pub fn stand_in(&self) -> EndpointSettings {
        EndpointSettings::new(Profile::Rfc)
            .with("cc", self.cc.stand_in())
            .expect("every controller has one of its kind")
    }
}

/// A congestion controller of Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TcpController {
    /// CUBIC.
    #[default]
    Cubic,
    /// NewReno.
    Reno,
    /// BBR version 1.
    Bbr,
}

impl TcpController {
    /// Every controller, with its name in Linux and in scenarios.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("cubic", Self::Cubic),
        ("reno", Self::Reno),
        ("bbr", Self::Bbr),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Reno => "reno",
            Self::Bbr => "bbr",
        }
    }

    /// The name of our controller of the same kind.
    pub(crate) fn stand_in(self) -> &'static str {
        match self {
            Self::Cubic => Algorithm::Cubic.name(),
            Self::Reno => Algorithm::NewReno.name(),
            Self::Bbr => Algorithm::Bbr.name(),
        }
    }
}

impl Serialize for TcpController {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.name())
    }
}

/// The implementation of background TCP flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum TcpRunner {
    /// iperf3 with the kernel's TCP.
    #[serde(rename = "iperf3")]
    Iperf3,
    /// QUIC flows with [the same controller](TcpFlows::stand_in) instead of them, as the simulator has no
    /// kernel.
    #[default]
    #[serde(rename = "quic stand-in")]
    StandIn,
}

impl From<BackendKind> for TcpRunner {
    fn from(backend: BackendKind) -> Self {
        match backend {
            BackendKind::Sim => Self::StandIn,
            BackendKind::Emu | BackendKind::Kernel => Self::Iperf3,
        }
    }
}
