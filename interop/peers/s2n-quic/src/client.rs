//! The client.

use std::io;
use std::sync::Arc;

use peer_kit::client::{ConnectError, GOODBYE, Link, Stack, any_address};
use peer_kit::tls::{self, TrustAny};
use peer_kit::{ClientArgs, Failure, Outcome};
use s2n_quic::Client;
use s2n_quic::client::Connect;
use s2n_quic::provider::tls::rustls;
use tokio::time::timeout;

use crate::transport::{Opener, Transport};

struct S2n<'a> {
    args: &'a ClientArgs,
    client: Client,
    verifier: Arc<TrustAny>,
}

pub(crate) async fn run(args: &ClientArgs) -> Outcome {
    let lacks = match args.case.as_str() {
        "versionnegotiation" => Some("s2n-quic has no switch for the version"),
        "keyupdate" => Some("s2n-quic has no call that initiates a key update"),
        "connectionmigration" => Some("s2n-quic has no call that migrates"),
        _ => None,
    };
    if let Some(reason) = lacks {
        return Err(Failure::Unsupported(reason));
    }
    let (tls, verifier) = tls::client_config(&args.case)?;
    let client = Client::builder()
        .with_tls(rustls::Client::from(tls))?
        .with_io(any_address(args.server))?
        .with_limits(crate::limits()?)?
        .start()
        .map_err(anyhow::Error::from)?;
    let mut stack = S2n {
        args,
        client,
        verifier,
    };
    peer_kit::client::run(&stack, args).await?;
    // The close need not reach the server.
    let _ = timeout(GOODBYE, stack.client.wait_idle()).await;
    Ok(())
}

impl Stack for S2n<'_> {
    type Transport = Transport;
    type Opener = Opener;

    async fn connect(&self, _early: bool) -> Result<Link<Self::Transport>, ConnectError> {
        let connect = Connect::new(self.args.server).with_server_name(self.args.name.as_str());
        let connection = self.client.connect(connect).await;
        let connection = connection.map_err(|error| ConnectError::Other(error.into()))?;
        Ok(Link {
            transport: Transport::new(connection),
            early: None,
            update_keys: Box::new(|| Box::pin(async { anyhow::bail!("there is no call for it") })),
            migrate: Box::new(|| Err(io::ErrorKind::Unsupported.into())),
            multipath: None,
        })
    }

    fn full_handshakes(&self) -> usize {
        self.verifier.seen()
    }
}
