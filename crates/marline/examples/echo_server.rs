//! Sends back all data that it receives: `cargo run -p marline --example echo_server -- 127.0.0.1:4433`.
//!
//! Writes its self-signed certificate to `target/echo.der`, where `echo_client` looks for it.

use std::error::Error;
use std::net::SocketAddr;

use marline::{Connecting, Endpoint, tls};
use rustls::pki_types::PrivatePkcs8KeyDer;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let addr: SocketAddr = match std::env::args().nth(1) {
        Some(addr) => addr.parse()?,
        None => ([127, 0, 0, 1], 4433).into(),
    };
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    std::fs::create_dir_all("target")?;
    std::fs::write("target/echo.der", identity.cert.der())?;
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let config = tls::server_config(vec![identity.cert.into()], key.into(), &[b"echo"])?;

    let endpoint = Endpoint::server(config, addr)?;
    println!("listening on {}", endpoint.local_addr());
    while let Some(connecting) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = serve(connecting).await {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

/// Serves until the peer closes the connection, which is the only end.
async fn serve(connecting: Connecting) -> Result<(), marline::ConnectionError> {
    let connection = connecting.await?;
    loop {
        let (mut send, mut recv) = connection.accept_bi().await?;
        tokio::spawn(async move {
            while let Some(chunk) = recv.read_chunk(usize::MAX).await? {
                send.write_chunk(chunk).await?;
            }
            send.finish()?;
            Ok::<_, Box<dyn Error + Send + Sync>>(())
        });
    }
}
