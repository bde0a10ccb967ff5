//! Driving TLS 1.3 over CRYPTO frames (RFC 9001, section 4).

mod config;

pub use config::{Cipher, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider};
