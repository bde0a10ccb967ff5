//! Captures of packets to records of bidirectional flows: their ends, duration and volume, the server's name and the
//! version of HTTP.
//!
//! ```text
//! capture/    pcap, pcapng, an interface -> packets, and secrets that pcapng has
//! decode/     Ethernet and other links, IPv4, IPv6 -> segments of TCP and UDP
//! table/      segments -> flows, and when they end
//! inspect/    the beginnings of flows -> names and versions: TLS, QUIC, cleartext HTTP
//! measures    the packets of a flow -> sizes, intervals, retransmissions, the first round trip
//! record      a flow -> a record
//! anonymize   addresses and names -> others, by a key
//! output/     records -> CSV, Parquet, IPFIX; files in turn
//! ```
//!
//! Packets of all kinds are hostile input: none panics, and memory is bounded by the limits in `limits.rs`. There is no
//! clock but the times of packets.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod anonymize;
pub mod capture;
mod decode;
mod exporter;
mod fragments;
mod inspect;
mod keylog;
mod limits;
mod lines;
mod measures;
pub mod output;
mod record;
mod server_log;
mod statistics;
mod table;
#[cfg(test)]
mod testing;

pub use anonymize::{Anonymizer, KeyError};
pub use capture::{Capture, CaptureError, Item, Packet};
pub use decode::Transport;
pub use exporter::{Exporter, Finished, Sources};
pub use keylog::{KeyLog, KeyLogError};
pub use limits::{DEFAULT_MAX_FLOWS, IPFIX_UDP_MESSAGE};
pub use measures::{Measured, Spread};
pub use record::{Record, Side, TunnelRecord};
pub use server_log::{ServerLog, ServerLogError};
pub use statistics::Statistics;
pub use table::{ClientSource, EndReason, Options, Timeouts};
