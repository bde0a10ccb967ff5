//! The client.

use std::future::ready;
use std::net::UdpSocket;
use std::sync::Arc;

use anyhow::Context as _;
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, ConnectionError, Endpoint};
use peer_kit::client::{ConnectError, GOODBYE, Link, Stack, any_address, any_address_for};
use peer_kit::tls::{self, TrustAny};
use peer_kit::{ClientArgs, Outcome};
use tokio::time::timeout;

use crate::paths::Paths;
use crate::transport::{Opener, Transport};

/// Draft 29: rustls has keys for it, and current stacks answer it with Version Negotiation.
const OLD_VERSION: u32 = 0xff00_001d;

struct Noq<'a> {
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
    config.transport_config(Arc::new(crate::paths::transport(&args.case, false)));
    let endpoint = Endpoint::client(any_address_for(args))?;
    endpoint.set_default_client_config(config);
    let stack = Noq {
        args,
        endpoint,
        verifier,
    };
    peer_kit::client::run(&stack, args).await?;
    // The close need not reach the server.
    let _ = timeout(GOODBYE, stack.endpoint.wait_idle()).await;
    Ok(())
}

impl Stack for Noq<'_> {
    type Transport = Transport;
    type Opener = Opener;

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

impl Noq<'_> {
    fn link(
        &self,
        connection: noq::Connection,
        accepted: Option<noq::ZeroRttAccepted>,
    ) -> Link<Transport> {
        let endpoint = self.endpoint.clone();
        let server = self.args.server;
        let (keys, paths) = (connection.clone(), connection.clone());
        Link {
            transport: Transport::new(connection),
            early: accepted.map(|accepted| Box::pin(accepted) as _),
            update_keys: Box::new(move || {
                keys.force_key_update();
                Box::pin(ready(Ok(())))
            }),
            migrate: Box::new(move || endpoint.rebind(UdpSocket::bind(any_address(server))?)),
            multipath: Some(Arc::new(Paths::new(paths))),
        }
    }
}
