//! Bulk QUIC flows.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline::{
    Bytes, ClientConfig, Connection, ConnectionError, Endpoint, EndpointConfig, MakeObserver,
    Runtime, ServerConfig, TransportConfig,
};
use marline_sim::identity::{Identity, identity};

use super::{HostAddress, Received, sleep_until};

const ALPN: &[&[u8]] = &[b"background"];

/// Bytes of each write.
const CHUNK: usize = 1 << 18;

/// Most bytes of each read.
const READ: usize = 1 << 20;

/// The delay before a lost connection is replaced.
const RETRY: Duration = Duration::from_secs(1);

/// A connection that always has data to send.
#[derive(Clone, Debug, Default)]
pub struct LongFlow {
    /// The transport configuration of both ends.
    pub transport: Arc<TransportConfig>,
    /// The delay of its start after the call.
    pub start: Duration,
}

impl LongFlow {
    /// Sends from `from` to `to`, for as long as both run tasks. A lost connection is replaced after a
    /// second. The sender is the server, at a specific address; the receiver connects to it.
    ///
    /// # Errors
    /// An address is in use, or does not belong to its runtime.
    pub fn start(&self, from: &HostAddress, to: &HostAddress) -> io::Result<Received> {
        self.start_observed(from, to, None)
    }

    /// The same, with `observer` for each of the sender's connections.
    ///
    /// # Errors
    /// As above.
    pub fn start_observed(
        &self,
        from: &HostAddress,
        to: &HostAddress,
        observer: Option<MakeObserver>,
    ) -> io::Result<Received> {
        let tls = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let server = identity()
            .server_config(ALPN, &self.transport)
            .map_err(tls)?;
        let server = ServerConfig { observer, ..server };
        let client = identity()
            .client_config(ALPN, &self.transport)
            .map_err(tls)?;
        let sender = endpoint(from, Some(server))?;
        let receiver = endpoint(to, None)?;
        let remote = sender.local_addr();
        from.runtime
            .spawn(Box::pin(send(Arc::clone(&from.runtime), sender)));
        let received = Received::default();
        let counted = received.clone();
        let runtime = Arc::clone(&to.runtime);
        let start = runtime.now() + self.start;
        to.runtime.spawn(Box::pin(async move {
            sleep_until(&*runtime, start).await;
            loop {
                // The flow is restarted after any error.
                receive(&receiver, client.clone(), remote, &counted)
                    .await
                    .ok();
                sleep_until(&*runtime, runtime.now() + RETRY).await;
            }
        }));
        Ok(received)
    }
}

fn endpoint(at: &HostAddress, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    let HostAddress { runtime, address } = at;
    let config = EndpointConfig::from_seed(runtime.seed()?);
    Endpoint::new(config, server, runtime.bind(*address)?, Arc::clone(runtime))
}

/// Sends on every accepted connection.
async fn send(runtime: Arc<dyn Runtime>, endpoint: Endpoint) {
    while let Some(connecting) = endpoint.accept().await {
        runtime.spawn(Box::pin(async move {
            if let Ok(connection) = connecting.await {
                fill(&connection).await.ok();
            }
        }));
    }
}

/// Sends without end: returns when the stream or `connection` fails.
pub(crate) async fn fill(connection: &Connection) -> Result<(), ConnectionError> {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    let mut stream = connection.open_uni().await?;
    while stream.write_chunk(Bytes::from_static(&ZEROS)).await.is_ok() {}
    Ok(())
}

async fn receive(
    endpoint: &Endpoint,
    config: ClientConfig,
    remote: SocketAddr,
    received: &Received,
) -> Result<(), ConnectionError> {
    let Ok(connecting) = endpoint.connect_with(config, remote, Identity::NAME) else {
        return Ok(());
    };
    read(&connecting.await?, received).await
}

/// Counts received bytes until the stream ends or fails.
pub(crate) async fn read(
    connection: &Connection,
    received: &Received,
) -> Result<(), ConnectionError> {
    let mut stream = connection.accept_uni().await?;
    while let Ok(Some(bytes)) = stream.read_chunk(READ).await {
        received.add(bytes.len());
    }
    Ok(())
}
