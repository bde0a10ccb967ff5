//! HTTP/3, HTTP/2 and HTTP/1.1: a static server and a client over marline.
//!
//! * [`server`] answers requests of all versions on one port number with one service: the files of a
//!   directory ([`server::directory`]), or any other.
//! * [`proxy`] is such a service whose responses are those of applications behind it.
//! * [`client`] fetches objects completely or reports what is missing, over any version and any number of
//!   connections.
//! * [`page`] loads web pages with such a client as browsers do: objects are requested when they are
//!   discovered.
//! * [`pipes`] decides how many connections to an origin there are, and which one carries an object.
//! * [`log`] has where the logs of a server go, and its messages for the operator.
//! * [`har`] makes archives of both that browsers' tools read.
//!
//! HTTP/3 is that of `marline-h3`, over marline's streams, on any [`marline::Runtime`], including virtual time.
//! TCP needs tokio.

mod authority;
mod body;
pub mod client;
mod content;
mod file;
pub mod har;
mod header;
mod host_pattern;
pub mod http3;
mod interim;
pub mod limits;
pub mod log;
mod networks;
pub mod page;
mod pem;
pub mod pipes;
pub mod proxy;
mod request_key;
mod runtime;
pub mod server;
mod stream;
mod tasks;
pub mod tcp;
mod tls;
pub mod transport;
mod whole;

pub use crate::body::{Body, BoxError};
pub use crate::file::read_regular_file;
pub use crate::host_pattern::{HostPattern, InvalidHostPattern};
pub use crate::interim::Interim;
pub use crate::networks::{InvalidNetwork, Network};
pub use crate::pem::{Dates, KeyKind, PemProblem, Validity};
pub use crate::request_key::{InvalidRequestKey, RequestKey};
pub use crate::tls::{NoTlsVersion, TlsVersion, TlsVersions};
