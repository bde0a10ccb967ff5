//! 802.11n and 802.11ac: a channel that all stations and both directions share.
//!
//! A [`WifiMedium`] is a [`Medium`](crate::Medium) in which
//!
//! - a station speaks only when nobody else does, after a random backoff; who speak at the same time lose both PPDUs
//!   (IEEE 802.11-2020, 10.3 and 10.23);
//! - whoever wins the medium sends what is queued at that instant, as one A-MPDU, and never waits for more. So how
//!   much an access carries is what came during the one before;
//! - data and acknowledgments are equals: each acknowledgment that is not joined to others costs an access;
//! - MPDUs that fail are sent again, and those behind them wait at the receiver, or overtake.
//!
//! So packets are delayed together, an aggregate at a time, and by each other. All that is drawn by chance comes
//! from the [`Seed`](crate::Seed); time moves by events, two a PPDU.
//!
//! Left out: hidden nodes, capture of the stronger of two signals, rate control, beacons, encryption.

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
mod scan;
mod station;

pub use backoff::Edca;
pub use config::{StationConfig, Topology, WifiConfig, WifiError};
pub use contender::Contender;
pub use errors::{Errors, Fades};
pub use medium::WifiMedium;
pub use phy::{Phy, Width};
pub use presets::{mesh_ht20, mesh_ht40, wifi_n_190};
pub use scan::Scan;
