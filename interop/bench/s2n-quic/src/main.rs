//! The benchmark program of s2n-quic.

use std::net::SocketAddr;

use anyhow::Context as _;
use bench_kit::client::{self, Stack};
use bench_kit::{
    ClientArgs, Command, IDLE, REQUEST, SERVER_NAME, STREAMS, ServerArgs, WINDOW, cli, control,
    socket, tls,
};
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::provider::{congestion_controller::Cubic, io};
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Server};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    match cli::parse() {
        Command::Server(args) => serve(&args).await,
        Command::Client(args) => client::run(|| S2n::new(&args), &args).await,
    }
}

fn limits(defaults: bool) -> anyhow::Result<Limits> {
    if defaults {
        return Ok(Limits::new());
    }
    let window = u64::from(WINDOW);
    Ok(Limits::new()
        .with_data_window(window)?
        .with_bidirectional_local_data_window(window)?
        .with_bidirectional_remote_data_window(window)?
        .with_max_send_buffer_size(WINDOW)?
        .with_max_open_local_bidirectional_streams(STREAMS.into())?
        .with_max_open_remote_bidirectional_streams(STREAMS.into())?
        .with_max_idle_timeout(IDLE)?)
}

fn io(address: SocketAddr) -> std::io::Result<io::tokio::Provider> {
    io::Default::builder()
        .with_receive_address(address)?
        .with_send_buffer_size(socket::BUFFER)?
        .with_recv_buffer_size(socket::BUFFER)?
        .build()
}

async fn serve(args: &ServerArgs) -> anyhow::Result<()> {
    let mut server = Server::builder()
        .with_tls(rustls::Server::from(tls::server_config(args)?))?
        .with_io(io(args.listen)?)?
        .with_limits(limits(args.defaults)?)?
        .with_congestion_controller(Cubic::default())?
        .start()?;
    control::serve(server.local_addr()?);
    let chunk = client::chunk();
    while let Some(mut connection) = server.accept().await {
        let chunk = chunk.clone();
        tokio::spawn(async move {
            while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
                tokio::spawn(answer(stream, chunk.clone()));
            }
        });
    }
    Ok(())
}

async fn answer(stream: BidirectionalStream, chunk: Bytes) -> anyhow::Result<()> {
    let (mut recv, mut send) = stream.split();
    let mut request = Vec::with_capacity(REQUEST);
    while let Some(part) = recv.receive().await? {
        request.extend_from_slice(&part);
    }
    let request = request.as_slice().try_into().context("request")?;
    let mut left = u64::from_be_bytes(request);
    while left > 0 {
        let part = client::part(&chunk, left);
        left -= part.len() as u64;
        send.send(part).await?;
    }
    send.finish()?;
    Ok(())
}

#[derive(Clone)]
struct S2n {
    client: Client,
    server: SocketAddr,
}

impl S2n {
    fn new(args: &ClientArgs) -> anyhow::Result<Self> {
        let client = Client::builder()
            .with_tls(rustls::Client::from(tls::client_config()?))?
            .with_io(io(socket::client_address(args.server))?)?
            .with_limits(limits(args.defaults)?)?
            .with_congestion_controller(Cubic::default())?
            .start()?;
        Ok(Self {
            client,
            server: args.server,
        })
    }
}

impl Stack for S2n {
    type Connection = Handle;

    async fn connect(&self) -> anyhow::Result<Handle> {
        let connect = Connect::new(self.server).with_server_name(SERVER_NAME);
        Ok(self.client.connect(connect).await?.handle())
    }

    async fn download(connection: &Handle, bytes: u64) -> anyhow::Result<u64> {
        let stream = connection.clone().open_bidirectional_stream().await?;
        let (mut recv, mut send) = stream.split();
        send.send(Bytes::copy_from_slice(&bytes.to_be_bytes()))
            .await?;
        send.finish()?;
        let mut received = 0;
        while let Some(chunk) = recv.receive().await? {
            received += chunk.len() as u64;
        }
        Ok(received)
    }

    fn close(connection: &Handle) {
        connection.close(0_u32.into());
    }
}
