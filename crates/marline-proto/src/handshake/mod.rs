//! Driving TLS 1.3 over CRYPTO frames (RFC 9001, section 4).
//!
//! | question | file |
//! | --- | --- |
//! | how is TLS driven, what does it yield? | `drive` |
//! | how are its bytes sent and received? | `stream` |
//! | which connection IDs does the handshake authenticate? | `binding` |
//! | what is kept of TLS afterwards? | `outcome` |
//! | how far has it come, between which ends? | `progress` |
//! | which TLS configurations can QUIC use? | `config` |

mod binding;
mod config;
mod drive;
mod outcome;
mod progress;
mod stream;

pub(crate) use binding::ExpectedIds;
pub use config::{
    Cipher, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
    default_crypto_provider,
};
pub use drive::ConnectError;
pub(crate) use drive::{Handshake, HandshakeStep};
pub(crate) use progress::{HandshakeIds, Progress, Source};
pub(crate) use stream::CryptoToken;
