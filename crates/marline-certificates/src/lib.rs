//! Certificates that a server obtains and renews by itself.
//!
//! ```text
//! Wanted -> Certificates::prepare: what the state directory has, or another certificate until the first one arrives
//!        -> Certificates::run: when is which due (schedule) -> an order (acme) -> state directory
//!        -> Identity::replace: the next handshake has it
//! ```
//!
//! [`Stapling`] gets the status of those that ask to be stapled (OCSP).
//!
//! [`Certificates`] owns them; the names, and the authority of each, come from a configuration ([`Wanted`]).

mod acme;
mod config;
mod error;
mod manager;
mod metrics;
mod schedule;
mod stapling;
mod store;

pub use self::config::{AcmeConfig, AcmeContact, Challenge, SiteAcme, Wanted};
pub use self::error::CertificateError;
pub use self::manager::{Certificates, Prepared, PreparedCertificate};
pub use self::metrics::{CertificateDays, ServedCertificate};
pub use self::stapling::{KeptStatus, Stapling, kept_status};
