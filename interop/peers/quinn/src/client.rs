//! The client.

use std::future::ready;
use std::net::UdpSocket;
use std::sync::Arc;

use anyhow::Context as _;
use peer_kit::client::{ConnectError, GOODBYE, Link, Stack, any_address};
use peer_kit::tls::{self, TrustAny};
use peer_kit::{ClientArgs, Outcome};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, ConnectionError, Endpoint};
use tokio::time::timeout;

/// Draft 29: rustls has keys for it, and current stacks answer it with Version Negotiation.
const OLD_VERSION: u32 = 0xff00_001d;

struct Quinn<'a> {
    args: &'a ClientArgs,
    endpoint: Endpoint,
    verifier: Arc<TrustAny>,
}

pub(crate) async fn run(args: &ClientArgs) -> Outcome {
    let (tls, verifier) = tls::client_config(&args.case)?;
    let initial = tls::initial_suite().context("no suite for Initial packets")?;
    let crypto = QuicClientConfig::with_initial(Arc::new(tls), initial)?;
    let mut config = ClientConfig::new(Arc::new(crypto));
    if args.case == "versionnegotiation" {
        config.version(OLD_VERSION);
    }
    let mut endpoint = Endpoint::client(any_address(args.server))?;
    endpoint.set_default_client_config(config);
    let stack = Quinn {
        args,
        endpoint,
        verifier,
    };
    peer_kit::client::run(&stack, args).await?;
    // The close need not reach the server.
    let _ = timeout(GOODBYE, stack.endpoint.wait_idle()).await;
    Ok(())
}

impl Stack for Quinn<'_> {
    type Transport = h3_quinn::Connection;
    type Opener = h3_quinn::OpenStreams;

    async fn connect(&self, early: bool) -> Result<Link<Self::Transport>, ConnectError> {
        let mut connecting = self
            .endpoint
            .connect(self.args.server, &self.args.name)
            .map_err(|error| ConnectError::Other(error.into()))?;
        let mut accepted = None;
        if early {
            match connecting.into_0rtt() {
                Ok((connection, zero_rtt)) => {
                    accepted = Some(zero_rtt);
                    return Ok(self.link(connection, accepted));
                }
                Err(refused) => connecting = refused,
            }
        }
        match connecting.await {
            Ok(connection) => Ok(self.link(connection, accepted)),
            Err(ConnectionError::VersionMismatch) => Err(ConnectError::VersionMismatch),
            Err(error) => Err(ConnectError::Other(error.into())),
        }
    }

    fn full_handshakes(&self) -> usize {
        self.verifier.seen()
    }
}

impl Quinn<'_> {
    fn link(
        &self,
        connection: quinn::Connection,
        accepted: Option<quinn::ZeroRttAccepted>,
    ) -> Link<h3_quinn::Connection> {
        let endpoint = self.endpoint.clone();
        let server = self.args.server;
        let keys = connection.clone();
        Link {
            transport: h3_quinn::Connection::new(connection),
            early: accepted.map(|accepted| Box::pin(accepted) as _),
            update_keys: Box::new(move || {
                keys.force_key_update();
                Box::pin(ready(Ok(())))
            }),
            migrate: Box::new(move || endpoint.rebind(UdpSocket::bind(any_address(server))?)),
            multipath: None,
        }
    }
}
