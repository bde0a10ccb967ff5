//! The server.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use peer_kit::{Outcome, ServerArgs, tls};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};

pub(crate) async fn run(args: &ServerArgs) -> Outcome {
    let tls = tls::server_config(&args.case, &args.cert, &args.key)?;
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut endpoint_config = EndpointConfig::default();
    if args.case == "versionnegotiation" {
        // Without the drafts, one of which a client of this family asks for.
        endpoint_config.supported_versions(vec![1]);
    }
    let socket = UdpSocket::bind(args.listen)?;
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(endpoint_config, Some(config), socket, runtime)?;
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
            // Data in 0-RTT waits for the handshake, then is there.
            let connection = match incoming.await {
                Ok(connection) => connection,
                Err(error) => return eprintln!("handshake: {error}"),
            };
            peer_kit::server::serve(h3_quinn::Connection::new(connection), www).await;
        });
    }
    Ok(())
}
