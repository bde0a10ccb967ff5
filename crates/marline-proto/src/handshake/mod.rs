//! Driving TLS 1.3 over CRYPTO frames (RFC 9001, section 4).
//!
//! | question | file |
//! | --- | --- |
//! | what moves TLS on, what does it yield? | `drive` |
//! | how do its bytes travel? | `stream` |
//! | what is known of the peer afterwards? | `outcome` |
//! | how far has it come, between whom? | `progress` |
//! | what must TLS be set to? | `config` |

mod binding;
mod config;
mod drive;
mod outcome;
mod progress;
mod stream;

pub(crate) use binding::ExpectedIds;
pub use config::{Cipher, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider};
pub use drive::ConnectError;
pub(crate) use drive::{Handshake, HandshakeStep};
pub(crate) use progress::{HandshakeIds, Progress, Source};
pub(crate) use stream::CryptoToken;
