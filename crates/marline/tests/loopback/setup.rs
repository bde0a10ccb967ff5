//! A server and a client that trusts it.

use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use marline::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, tls};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in the certificate.
pub(crate) const NAME: &str = "localhost";

/// Any port of the loopback address.
pub(crate) const LOOPBACK: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A time limit above what any test takes.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

pub(crate) struct Identity {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let signed = rcgen::generate_simple_self_signed(vec![NAME.into()]).unwrap();
        Self {
            certificate: signed.cert.into(),
            key: signed.signing_key.serialize_der(),
        }
    }

    pub(crate) fn server(&self, transport: TransportConfig) -> ServerConfig {
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let chain = vec![self.certificate.clone()];
        let mut config = tls::server_config(chain, key, &[b"test"]).unwrap();
        config.transport = Arc::new(transport);
        config
    }

    pub(crate) fn client(&self, transport: TransportConfig) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let mut config = tls::client_config(roots, &[b"test"]).unwrap();
        config.transport = Arc::new(transport);
        config
    }
}

/// Endpoints with `transport` on both sides.
pub(crate) fn endpoints_with(transport: TransportConfig) -> (Endpoint, Endpoint) {
    let identity = Identity::new();
    let server = Endpoint::server(identity.server(transport.clone()), LOOPBACK).unwrap();
    let client = Endpoint::client(LOOPBACK).unwrap();
    client.set_default_client_config(identity.client(transport));
    (client, server)
}

/// Server and client.
pub(crate) fn endpoints() -> (Endpoint, Endpoint) {
    endpoints_with(TransportConfig::default())
}

/// Both ends of a new connection: the client's, the server's.
pub(crate) async fn connect(client: &Endpoint, server: &Endpoint) -> (Connection, Connection) {
    let connecting = client.connect(server.local_addr(), NAME).unwrap();
    let accepting = async { server.accept().await.unwrap().await.unwrap() };
    let (ours, theirs) = tokio::join!(connecting, accepting);
    (ours.unwrap(), theirs)
}

/// Waits for `future`, at most for [`TIME_LIMIT`].
pub(crate) async fn within_limit<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIME_LIMIT, future)
        .await
        .expect("took too long")
}

/// Sends back the data of every stream, until the connection ends.
pub(crate) async fn echo(connection: Connection) {
    while let Ok((mut send, mut recv)) = connection.accept_bi().await {
        tokio::spawn(async move {
            while let Ok(Some(chunk)) = recv.read_chunk(usize::MAX).await {
                if send.write_chunk(chunk).await.is_err() {
                    return;
                }
            }
            send.finish().ok();
            send.stopped().await.ok();
        });
    }
}

/// Bytes with a period of 251.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}
