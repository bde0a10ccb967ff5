//! Loss recovery and congestion control of one path (RFC 9002).
//!
//! `Recovery` is notified of the events of packets and decides what may be sent:
//!
//! | event | call | RFC 9002 |
//! | --- | --- | --- |
//! | a packet is sent | `on_sent` | appendix A.5 |
//! | an ACK frame arrives | `on_ack_received`, which returns an `Outcome` | appendix A.7 |
//! | the loss detection timer expires | `on_timeout`, which returns an `Expired` | appendix A.9 |
//! | a packet number space is discarded | `on_space_discarded` | appendix A.11 |
//!
//! and asked for the time of the next timeout (`next_timeout`) and for the send budget (`may_send`).
//! Acknowledged and lost packets, and the tokens of their frames, are returned in `Resolved`, in order.
//!
//! | subject | file |
//! | --- | --- |
//! | round-trip times (section 5) | `rtt` |
//! | loss detection thresholds (section 6.1) | `loss` |
//! | probe timeouts and the loss detection timer (section 6.2) | `pto`, `timers` |
//! | window, bytes in flight, pacing (section 7) | `budget` |
//! | loss epochs, spurious losses, persistent congestion (sections 7.3.2 and 7.6) | `epoch`, `persistent` |
//! | an ACK frame, step by step | `ack` |
//! | loss detection, step by step | `detect` |

mod ack;
mod budget;
mod detect;
mod epoch;
mod first_flight;
pub mod loss;
mod manager;
mod persistent;
pub mod pto;
mod resolved;
mod rtt;
mod timers;

pub(crate) use ack::{AckReceived, Outcome};
pub(crate) use first_flight::InitialWindowChoice;
pub use loss::LossDetector;
pub(crate) use manager::{OutgoingPacket, Recovery, RecoveryConfig};
pub(crate) use resolved::{PathParts, Resolved, ResolvedToken};
pub use rtt::{INITIAL_RTT, RttEstimator};
pub(crate) use timers::{ArmedTimer, Expired, ProbeConditions};

use std::time::Duration;

/// Timer granularity (RFC 9002, section 6.1.2).
pub const GRANULARITY: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
