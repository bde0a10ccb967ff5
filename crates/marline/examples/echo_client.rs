//! A client of `echo_server`: `cargo run -p marline --example echo_client -- 127.0.0.1:4433 hello`.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use marline::{Endpoint, tls};
use rustls::RootCertStore;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let server: SocketAddr = match args.next() {
        Some(addr) => addr.parse()?,
        None => ([127, 0, 0, 1], 4433).into(),
    };
    let message = args.next().unwrap_or_else(|| "hello".into());

    let mut roots = RootCertStore::empty();
    roots.add(std::fs::read("target/echo.der")?.into())?;
    let endpoint = Endpoint::client((Ipv4Addr::UNSPECIFIED, 0).into())?;
    endpoint.set_default_client_config(tls::client_config(roots, &[b"echo"])?);

    let connection = endpoint.connect(server, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(message.as_bytes()).await?;
    send.finish()?;
    let answer = recv.read_to_end(1 << 20).await?;
    println!("{}", String::from_utf8_lossy(&answer));
    println!("round trip: {:?}", connection.rtt());

    connection.close(0, b"done");
    endpoint.wait_idle().await;
    Ok(())
}
