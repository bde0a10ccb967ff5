//! The client without sockets, for tests that act as the server.

use tokio::io::DuplexStream;

use super::connection::TcpClient;
use super::{Client, ClientConfig, ClientError, Transport};

/// A client of HTTP/2 or HTTP/1.1 whose connections are the streams that `dial` opens, without TLS.
///
/// # Errors
/// As [`Client::new`].
pub fn client(
    config: ClientConfig,
    dial: impl Fn() -> DuplexStream + Send + Sync + 'static,
) -> Result<Client, ClientError> {
    let client = Client::new(config)?;
    let tcp = TcpClient::new(&client.config, None, client.runtime.clone())?;
    let transport = Transport::Tcp(tcp.over(Box::new(dial)));
    Ok(Client {
        transport,
        ..client
    })
}
