//! 802.11n and 802.11ac: a channel that all stations and both directions share.
//!
//! A [`WifiMedium`] is a [`Medium`](crate::Medium) with these properties:
//!
//! - A station transmits only while no other does, after a random backoff; stations that start at the
//!   same time collide and lose their PPDUs (IEEE 802.11-2020, 10.3 and 10.23).
//! - A station that gains access sends the packets queued at that time as one A-MPDU, without waiting
//!   for more. A PPDU therefore carries the packets that arrived during the previous access.
//! - Data and acknowledgments have equal priority: each unaggregated acknowledgment takes an access.
//! - Failed MPDUs are retransmitted; the receiver holds those behind them, or delivers them out of order.
//!
//! Packets are therefore delayed in aggregates, and by each other. All randomness comes from the
//! [`Seed`](crate::Seed); the simulation is event driven, with two events per PPDU. With a [`Signal`], errors follow from
//! the distance of stations, which may choose their modulation by [`RateControl`].
//!
//! Not modelled: hidden nodes, capture effect, beacons, encryption.

mod aggregate;
mod background;
mod backoff;
mod block_ack;
mod config;
mod contender;
mod entry;
mod errors;
mod exits;
mod frame;
mod hop;
mod medium;
mod phy;
mod presets;
mod rate_control;
mod scan;
mod signal;
mod station;

pub use backoff::Edca;
pub use config::{HopConfig, StationConfig, Topology, WifiConfig, WifiError};
pub use contender::Contender;
pub use errors::{Errors, Fades};
pub use medium::WifiMedium;
pub use phy::{Phy, Width};
pub use presets::{mesh_ht20, mesh_ht40, wifi_n_190};
pub use rate_control::RateControl;
pub use scan::Scan;
pub use signal::{Signal, Waypoint};
