//! TLS 1.3 over CRYPTO frames (RFC 9001, section 4).
//!
//! | question | file |
//! | --- | --- |
//! | how is TLS driven, what does it yield? | `drive` |
//! | how are its bytes sent and received? | `stream` |
//! | which connection IDs does the handshake authenticate? | `binding` |
//! | what is kept of TLS afterwards? | `outcome` |
//! | how far has it come, between which ends? | `progress` |
//! | which TLS configurations can QUIC use? | `config` |
//! | which version does a connection have? | `version` |
//! | which version does a client offer, before TLS reads it? | `client_hello` |
//! | which secrets belong to another version's keys? | `recorder` |
//! | which sessions belong to a version? | `sessions` |

mod binding;
mod client_hello;
mod config;
mod drive;
mod outcome;
mod progress;
mod recorder;
mod sessions;
mod stream;
mod version;

pub(crate) use binding::ExpectedIds;
pub use config::{
    Cipher, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
    default_crypto_provider,
};
pub use drive::ConnectError;
pub(crate) use drive::{ClientStart, Handshake, HandshakeStep, ServerStart};
pub(crate) use progress::{HandshakeIds, Progress, Source};
pub(crate) use stream::CryptoToken;
pub(crate) use version::{Selection, VersionState};
