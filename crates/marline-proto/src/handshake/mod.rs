//! TLS 1.3 over CRYPTO frames (RFC 9001, section 4).
//!
//! | subject | file |
//! | --- | --- |
//! | driving TLS, and its results | `drive` |
//! | CRYPTO data, sent and received | `stream` |
//! | authentication of connection IDs | `binding` |
//! | state kept after the handshake | `outcome` |
//! | TLS configurations for QUIC | `config` |
//! | the versions that a connection may use | `versions` |
//! | versions in a ClientHello, before TLS is created | `client_hello` |
//! | secrets for another version's keys | `recorder` |
//! | sessions by version, or by rules of an application | `sessions` |

mod binding;
mod client_hello;
mod config;
mod drive;
mod outcome;
mod recorder;
mod sessions;
mod stream;
mod versions;

pub(crate) use binding::ExpectedIds;
pub use config::{
    Cipher, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
    default_crypto_provider,
};
pub use drive::ConnectError;
pub(crate) use drive::{ClientStart, Handshake, HandshakeStep, ServerStart};
pub use sessions::SessionKind;
pub(crate) use stream::CryptoToken;
pub use versions::Versions;
