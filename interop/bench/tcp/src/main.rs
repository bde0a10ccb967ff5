//! The benchmark program of the kernel's TCP with TLS 1.3. A connection carries requests one after another.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use bench_kit::client::{self, Stack};
use bench_kit::{ClientArgs, Command, REQUEST, SERVER_NAME, ServerArgs, cli, control, tls};
use bytes::Bytes;
use nix::sys::socket::{setsockopt, sockopt};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Bytes that a client reads at once.
const READ: usize = 1 << 16;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => serve(&args).await,
        Command::Client(args) => client::run(|| Tcp::new(&args), &args).await,
    }
}

async fn serve(args: &ServerArgs) -> anyhow::Result<()> {
    let acceptor = TlsAcceptor::from(Arc::new(tls::server_config(args)?));
    let listener = TcpListener::bind(args.listen).await?;
    if let Some(name) = &args.congestion {
        // Accepted connections inherit it.
        setsockopt(&listener, sockopt::TcpCongestion, &OsString::from(name))
            .with_context(|| format!("the kernel has no {name}"))?;
    }
    control::serve(listener.local_addr()?);
    let chunk = client::chunk();
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(acceptor.clone(), stream, chunk.clone()));
    }
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream, chunk: Bytes) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    let mut request = [0; REQUEST];
    // An error is the end of the connection, too.
    while stream.read_exact(&mut request).await.is_ok() {
        let mut left = u64::from_be_bytes(request);
        while left > 0 {
            let part = client::part(&chunk, left);
            left -= part.len() as u64;
            stream.write_all(&part).await?;
        }
        stream.flush().await?;
    }
    Ok(())
}

#[derive(Clone)]
struct Tcp {
    connector: TlsConnector,
    server: SocketAddr,
}

impl Tcp {
    fn new(args: &ClientArgs) -> anyhow::Result<Self> {
        Ok(Self {
            connector: TlsConnector::from(Arc::new(tls::client_config()?)),
            server: args.server,
        })
    }
}

impl Stack for Tcp {
    type Connection = Arc<Mutex<TlsStream<TcpStream>>>;

    async fn connect(&self) -> anyhow::Result<Self::Connection> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(SERVER_NAME)?;
        let stream = self.connector.connect(name, stream).await?;
        Ok(Arc::new(Mutex::new(stream)))
    }

    async fn download(connection: &Self::Connection, bytes: u64) -> anyhow::Result<u64> {
        let mut stream = connection.lock().await;
        stream.write_all(&bytes.to_be_bytes()).await?;
        stream.flush().await?;
        let mut buffer = vec![0; READ];
        let mut received = 0;
        while received < bytes {
            let count = stream.read(&mut buffer).await?;
            anyhow::ensure!(count > 0, "the server closed the connection");
            received += count as u64;
        }
        Ok(received)
    }

    /// The kernel closes it when it is dropped.
    fn close(_connection: &Self::Connection) {}
}
