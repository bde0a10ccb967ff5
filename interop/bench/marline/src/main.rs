//! The benchmark program of marline.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use bench_kit::client::{self, Stack};
use bench_kit::{
    ClientArgs, Command, IDLE, REQUEST, SERVER_NAME, STREAMS, ServerArgs, WINDOW, cli, control,
    socket, tls,
};
use marline::congestion::{Algorithm, CONTROLLERS};
use marline::runtime::reuse_port;
use marline::{
    Bytes, ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, Runtime as _,
    SendStream, ServerConfig, TlsClientConfig, TlsServerConfig, TokioRuntime, TransportConfig,
    Worker,
};
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinSet;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => serve(&args).await,
        Command::Client(args) => client::run(|| Marline::new(&args), &args).await,
    }
}

fn transport(defaults: bool) -> Arc<TransportConfig> {
    if defaults {
        return Arc::new(TransportConfig::default());
    }
    let window = WINDOW.into();
    Arc::new(TransportConfig {
        stream_receive_window: Some(window),
        receive_window: Some(window),
        max_stream_receive_window: window,
        max_receive_window: window,
        send_buffer: window,
        max_concurrent_bidi_streams: STREAMS.into(),
        max_idle_timeout: Some(IDLE),
        controller: Arc::new(Algorithm::Cubic),
        ..TransportConfig::default()
    })
}

async fn serve(args: &ServerArgs) -> anyhow::Result<()> {
    let tls = TlsServerConfig::new(Arc::new(tls::server_config(args)?))?;
    let mut config = ServerConfig::new(tls);
    config.transport = transport(args.defaults);
    if let Some(name) = &args.congestion {
        let controller = CONTROLLERS.make(name).map_err(anyhow::Error::msg)?;
        config.transport = Arc::new(TransportConfig {
            controller,
            ..(*config.transport).clone()
        });
    }
    let runtime = Arc::new(TokioRuntime::current()?);
    let mut settings = EndpointConfig::from_seed(runtime.seed()?);
    // All clients have one address; the others limit nothing by it.
    settings.clients.max_connections_per_address = usize::MAX;
    settings.clients.max_connections_per_prefix = usize::MAX;
    let sockets = reuse_port::bind(args.listen, args.workers)?;
    if args.workers > 1 {
        let workers = args.workers.try_into()?;
        let field = settings.worker_field();
        reuse_port::steer(&sockets[0], &settings.worker_key, field, workers)?;
    }
    // The first worker runs here, and each other one on a thread of its own.
    let mut handles = vec![Handle::current()];
    for _ in 1..args.workers {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        handles.push(runtime.handle().clone());
        thread::spawn(move || runtime.block_on(pending::<()>()));
    }
    let workers = handles.iter().zip(sockets).map(|(handle, socket)| {
        let runtime = Arc::new(TokioRuntime::of(handle.clone()));
        let socket = runtime.wrap(socket)?;
        Ok(Worker {
            socket,
            runtime,
            receives: true,
        })
    });
    let workers = workers.collect::<io::Result<_>>()?;
    let endpoints = Endpoint::workers(&settings, &config, workers)?;
    control::serve(endpoints[0].local_addr());
    let accepting = endpoints.into_iter().zip(handles);
    let mut accepting: JoinSet<()> =
        accepting.fold(JoinSet::new(), |mut all, (endpoint, handle)| {
            all.spawn_on(accept(endpoint), &handle);
            all
        });
    accepting.join_next().await;
    Ok(())
}

/// Answers the requests of the connections of one endpoint.
async fn accept(endpoint: Endpoint) {
    let chunk = client::chunk();
    while let Some(connecting) = endpoint.accept().await {
        let chunk = chunk.clone();
        tokio::spawn(async move {
            let Ok(connection) = connecting.await else {
                return;
            };
            while let Ok((send, recv)) = connection.accept_bi().await {
                tokio::spawn(answer(send, recv, chunk.clone()));
            }
        });
    }
}

async fn answer(mut send: SendStream, mut recv: RecvStream, chunk: Bytes) -> anyhow::Result<()> {
    let request = recv.read_to_end(REQUEST).await?;
    let mut left = u64::from_be_bytes(request[..].try_into()?);
    while left > 0 {
        let part = client::part(&chunk, left);
        left -= part.len() as u64;
        send.write_chunk(part).await?;
    }
    send.finish()?;
    Ok(())
}

#[derive(Clone)]
struct Marline {
    endpoint: Endpoint,
    server: SocketAddr,
}

impl Marline {
    fn new(args: &ClientArgs) -> anyhow::Result<Self> {
        let tls = TlsClientConfig::new(Arc::new(tls::client_config()?))?;
        let mut config = ClientConfig::new(tls);
        config.transport = transport(args.defaults);
        let endpoint = Endpoint::client(socket::client_address(args.server))?;
        endpoint.set_default_client_config(config);
        Ok(Self {
            endpoint,
            server: args.server,
        })
    }
}

impl Stack for Marline {
    type Connection = Connection;

    async fn connect(&self) -> anyhow::Result<Connection> {
        Ok(self.endpoint.connect(self.server, SERVER_NAME)?.await?)
    }

    async fn download(connection: &Connection, bytes: u64) -> anyhow::Result<u64> {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&bytes.to_be_bytes()).await?;
        send.finish()?;
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
            received += chunk.len() as u64;
        }
        Ok(received)
    }

    fn close(connection: &Connection) {
        connection.close(0, b"");
    }
}
