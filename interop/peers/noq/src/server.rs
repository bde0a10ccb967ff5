//! The server.

use std::path::Path;
use std::sync::Arc;

use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, ServerConfig};
use peer_kit::{Outcome, ServerArgs, tls};

use crate::transport::Transport;

pub(crate) async fn run(args: &ServerArgs) -> Outcome {
    let tls = tls::server_config(&args.case, &args.cert, &args.key)?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, args.listen)?;
    eprintln!("listening on {}", endpoint.local_addr()?);

    let www: Arc<Path> = args.www.as_path().into();
    let retry = args.case == "retry";
    while let Some(incoming) = endpoint.accept().await {
        if retry && incoming.may_retry() && !incoming.remote_address_validated() {
            // Only fails where no Retry may be sent, which was asked just above.
            let _ = incoming.retry();
            continue;
        }
        let www = Arc::clone(&www);
        tokio::spawn(async move {
            let connecting = match incoming.accept() {
                Ok(connecting) => connecting,
                Err(error) => return eprintln!("accept: {error}"),
            };
            // Requests in 0-RTT are answered at once, with 0.5-RTT data.
            let connection = match connecting.into_0rtt() {
                Ok((connection, _)) => connection,
                Err(connecting) => match connecting.await {
                    Ok(connection) => connection,
                    Err(error) => return eprintln!("handshake: {error}"),
                },
            };
            peer_kit::server::serve(Transport::new(connection), www).await;
        });
    }
    Ok(())
}
