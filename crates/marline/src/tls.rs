//! Common TLS configurations in one call.
//!
//! For anything else (client certificates, a resolver by server name, another verifier) build the
//! `rustls` configuration and hand it to [`ServerConfig::new`] or [`ClientConfig::new`] in a [`TlsServerConfig`] or
//! [`TlsClientConfig`].

use std::sync::Arc;

use marline_proto::{
    ClientConfig, ServerConfig, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;

/// A server that presents one certificate (`chain`, the end-entity certificate first) and supports the
/// protocols `alpn`, most preferred first. It keeps sessions in memory and accepts 0-RTT.
///
/// # Errors
/// The key's type is not supported, or the key does not match the certificate.
pub fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    alpn: &[&[u8]],
) -> Result<ServerConfig, rustls::Error> {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(crypto_provider(None)))
        .with_protocol_versions(&[&TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    // The only value other than 0 that QUIC allows (RFC 9001, section 4.6.1).
    tls.max_early_data_size = u32::MAX;
    Ok(ServerConfig::new(
        TlsServerConfig::new(Arc::new(tls)).map_err(unfit)?,
    ))
}

/// A client that trusts servers certified by `roots` and supports the protocols `alpn`, most preferred
/// first. It keeps sessions in memory; early data is sent only after
/// [`Connecting::into_0rtt`](crate::Connecting::into_0rtt).
///
/// # Errors
/// Never, with the cryptography that is built in.
pub fn client_config(roots: RootCertStore, alpn: &[&[u8]]) -> Result<ClientConfig, rustls::Error> {
    let mut tls = rustls::ClientConfig::builder_with_provider(Arc::new(crypto_provider(None)))
        .with_protocol_versions(&[&TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    tls.enable_early_data = true;
    Ok(ClientConfig::new(
        TlsClientConfig::new(Arc::new(tls)).map_err(unfit)?,
    ))
}

fn unfit(error: TlsConfigError) -> rustls::Error {
    rustls::Error::General(error.to_string())
}
