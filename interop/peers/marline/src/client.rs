//! The client: marline's connections under the kit's requests.

use std::net::UdpSocket;
use std::sync::Arc;

use marline::{
    Cipher, ClientConfig, Connection, ConnectionError, Endpoint, TlsClientConfig, Version,
    Versions, crypto_provider,
};
use marline_http::transport::qlog_observer;
use peer_kit::client::{
    ConnectError, EarlyAccepted, GOODBYE, Link, Stack, any_address, any_address_for,
};
use peer_kit::tls::{self, TrustAny};
use peer_kit::{ClientArgs, Outcome, multipath};
use tokio::time::timeout;

use crate::paths::{self, Paths};

/// A reserved version (RFC 9000, section 15), which triggers version negotiation.
const UNKNOWN_VERSION: u32 = 0x1a2a_3a4a;

struct Marline<'a> {
    args: &'a ClientArgs,
    endpoint: Endpoint,
    verifier: Arc<TrustAny>,
}

pub(crate) async fn run(args: &ClientArgs) -> Outcome {
    let only = (args.case == "chacha20").then_some(Cipher::ChaCha20Poly1305);
    let (tls, verifier) = tls::client_config_with(crypto_provider(only), &args.case)?;
    let mut config = ClientConfig::new(TlsClientConfig::new(Arc::new(tls))?);
    config.observer = crate::qlog_directory()?.map(qlog_observer);
    if args.case == "versionnegotiation" {
        config.version = UNKNOWN_VERSION;
    }
    if args.case == "v2" {
        // Some servers follow the client's preference.
        config.versions = Versions::preferring(Version::V2);
    }
    if multipath::is_wanted(&args.case, false) {
        config.transport = paths::transport(&args.case, false);
    }
    let endpoint = Endpoint::client(any_address_for(args))?;
    endpoint.set_default_client_config(config);
    let stack = Marline {
        args,
        endpoint,
        verifier,
    };
    peer_kit::client::run(&stack, args).await?;
    // The close need not reach the server.
    let _ = timeout(GOODBYE, stack.endpoint.wait_idle()).await;
    Ok(())
}

impl Stack for Marline<'_> {
    type Transport = marline_h3_quic::Connection;
    type Opener = marline_h3_quic::Opener;

    async fn connect(&self, early: bool) -> Result<Link<Self::Transport>, ConnectError> {
        let mut connecting = self
            .endpoint
            .connect(self.args.server, &self.args.name)
            .map_err(|error| ConnectError::Other(error.into()))?;
        if early {
            match connecting.into_0rtt() {
                Ok(connection) => {
                    let accepted = early_accepted(connection.clone());
                    return Ok(self.link(connection, Some(accepted)));
                }
                Err(refused) => connecting = refused,
            }
        }
        match connecting.await {
            Ok(connection) => Ok(self.link(connection, None)),
            Err(ConnectionError::VersionMismatch) => Err(ConnectError::VersionMismatch),
            Err(error) => Err(ConnectError::Other(error.into())),
        }
    }

    fn full_handshakes(&self) -> usize {
        self.verifier.seen()
    }
}

impl Marline<'_> {
    fn link(
        &self,
        connection: Connection,
        early: Option<EarlyAccepted>,
    ) -> Link<marline_h3_quic::Connection> {
        let endpoint = self.endpoint.clone();
        let server = self.args.server;
        let (keys, paths) = (connection.clone(), connection.clone());
        Link {
            transport: marline_h3_quic::Connection::new(connection),
            early,
            update_keys: Box::new(move || {
                let keys = keys.clone();
                Box::pin(async move {
                    keys.confirmed().await?;
                    anyhow::ensure!(keys.update_keys(), "no key update is allowed now");
                    Ok(())
                })
            }),
            migrate: Box::new(move || endpoint.rebind(UdpSocket::bind(any_address(server))?)),
            multipath: Some(Arc::new(Paths::new(paths))),
        }
    }
}

fn early_accepted(connection: Connection) -> EarlyAccepted {
    Box::pin(
        async move { connection.connected().await.is_ok() && connection.early_data_accepted() },
    )
}
