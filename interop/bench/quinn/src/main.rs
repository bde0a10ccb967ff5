//! The benchmark program of quinn.

use std::net::SocketAddr;
use std::sync::Arc;

use bench_kit::client::{self, Stack};
use bench_kit::{
    ClientArgs, Command, IDLE, REQUEST, SERVER_NAME, STREAMS, ServerArgs, WINDOW, cli, control,
    socket, tls,
};
use bytes::Bytes;
use quinn::congestion::CubicConfig;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig,
    TokioRuntime, TransportConfig,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => serve(&args).await,
        Command::Client(args) => client::run(|| Quinn::new(&args), &args).await,
    }
}

fn transport(defaults: bool) -> anyhow::Result<Arc<TransportConfig>> {
    let mut config = TransportConfig::default();
    if defaults {
        return Ok(Arc::new(config));
    }
    config
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_idle_timeout(Some(IDLE.try_into()?))
        .congestion_controller_factory(Arc::new(CubicConfig::default()));
    Ok(Arc::new(config))
}

fn endpoint(address: SocketAddr, server: Option<ServerConfig>) -> anyhow::Result<Endpoint> {
    let socket = socket::bind(address)?;
    let runtime = Arc::new(TokioRuntime);
    Ok(Endpoint::new(
        EndpointConfig::default(),
        server,
        socket,
        runtime,
    )?)
}

async fn serve(args: &ServerArgs) -> anyhow::Result<()> {
    let crypto = QuicServerConfig::try_from(tls::server_config(args)?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(transport(args.defaults)?);
    let endpoint = endpoint(args.listen, Some(config))?;
    control::serve(endpoint.local_addr()?);
    let chunk = client::chunk();
    while let Some(incoming) = endpoint.accept().await {
        let chunk = chunk.clone();
        tokio::spawn(async move {
            let Ok(connection) = incoming.await else {
                return;
            };
            while let Ok((send, recv)) = connection.accept_bi().await {
                tokio::spawn(answer(send, recv, chunk.clone()));
            }
        });
    }
    Ok(())
}

async fn answer(mut send: SendStream, mut recv: RecvStream, chunk: Bytes) -> anyhow::Result<()> {
    let mut request = [0; REQUEST];
    recv.read_exact(&mut request).await?;
    let mut left = u64::from_be_bytes(request);
    while left > 0 {
        let part = client::part(&chunk, left);
        left -= part.len() as u64;
        send.write_chunk(part).await?;
    }
    send.finish()?;
    Ok(())
}

#[derive(Clone)]
struct Quinn {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl Quinn {
    fn new(args: &ClientArgs) -> anyhow::Result<Self> {
        let crypto = QuicClientConfig::try_from(tls::client_config()?)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(args.defaults)?);
        let mut endpoint = endpoint(socket::client_address(args.server), None)?;
        endpoint.set_default_client_config(config);
        Ok(Self {
            endpoint,
            server: args.server,
        })
    }
}

impl Stack for Quinn {
    type Connection = Connection;

    async fn connect(&self) -> anyhow::Result<Connection> {
        Ok(self.endpoint.connect(self.server, SERVER_NAME)?.await?)
    }

    async fn download(connection: &Connection, bytes: u64) -> anyhow::Result<u64> {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&bytes.to_be_bytes()).await?;
        send.finish()?;
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            received += chunk.bytes.len() as u64;
        }
        Ok(received)
    }

    fn close(connection: &Connection) {
        connection.close(0_u32.into(), b"");
    }
}
