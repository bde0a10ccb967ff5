//! IP packets over HTTP/3: CONNECT-IP (RFC 9484), client and server.
//!
//! | module | content |
//! | --- | --- |
//! | [`packet`] | headers of IP packets, and the addresses that a tunnel carries |
//! | [`icmp`] | ICMP messages about packets that are too large |
//! | [`address`], [`route`] | the capsules of CONNECT-IP |
//! | [`scope`] | the target of a request |
//! | [`pool`] | the addresses that a server assigns |
//! | [`tokens`] | the users of a server |
//! | `flows`, `copies` | the path of each inner flow, packets that are sent on two |
//! | `queue`, `counters`, `link` | packets between a device and HTTP datagrams |
//! | `offload` | several packets of a flow as one, between a device and its host |
//! | `dial` | the destinations that a server reaches for its users |
//! | `split` | connections of TCP as streams |
//! | [`udp`] | sockets of UDP at the server: CONNECT-UDP |
//! | `server`, `client` | the two ends |
//! | `mode`, `networks`, `caps` | the use of several networks, those that lead to the server, their caps |
//! | `selection`, `programs`, `names` | the packets of a host that go into a tunnel, those of some programs, and to some names |
//! | `device`, `routing`, `dns`, `restore`, `gateway`, `nat` | the configuration of a host with Linux, and how it is put back |
//!
//! Everything that a peer can make an end store has a limit: capsules by their types, packets by the queue, addresses by the
//! pool.

pub mod address;
#[cfg(target_os = "linux")]
mod caps;
#[cfg(target_os = "linux")]
pub mod client;
#[cfg(target_os = "linux")]
mod copies;
pub mod counters;
#[cfg(target_os = "linux")]
pub mod device;
#[cfg(target_os = "linux")]
mod dial;
#[cfg(target_os = "linux")]
pub mod dns;
#[cfg(target_os = "linux")]
mod flows;
#[cfg(target_os = "linux")]
pub mod gateway;
pub mod icmp;
#[cfg(target_os = "linux")]
mod link;
#[cfg(target_os = "linux")]
mod mode;
#[cfg(target_os = "linux")]
pub mod names;
#[cfg(target_os = "linux")]
pub mod nat;
#[cfg(target_os = "linux")]
mod networks;
#[cfg(target_os = "linux")]
mod offload;
pub mod packet;
pub mod pool;
#[cfg(target_os = "linux")]
pub mod programs;
#[cfg(target_os = "linux")]
mod queue;
#[cfg(target_os = "linux")]
pub mod restore;
pub mod route;
#[cfg(target_os = "linux")]
pub mod routing;
pub mod scope;
#[cfg(target_os = "linux")]
mod selection;
#[cfg(target_os = "linux")]
pub mod server;
#[cfg(target_os = "linux")]
pub mod split;
pub mod tokens;
pub mod udp;

pub use ipnet;
#[cfg(target_os = "linux")]
pub use link::capsule_parser;
