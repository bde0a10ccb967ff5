//! The server.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;

use noq::crypto::rustls::QuicServerConfig;
use noq::{Endpoint, EndpointConfig, ServerConfig, TokioRuntime};
use peer_kit::{Outcome, ServerArgs, multipath, tls};

use crate::paths::Paths;
use crate::transport::Transport;

pub(crate) async fn run(args: &ServerArgs) -> Outcome {
    let tls = tls::server_config(&args.case, &args.cert, &args.key)?;
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(crate::paths::transport(&args.case, true)));
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
    let watches = multipath::is_wanted(&args.case, true);
    while let Some(incoming) = endpoint.accept().await {
        if retry && incoming.may_retry() && !incoming.remote_address_validated() {
            // Only fails where no Retry may be sent, which was asked just above.
            let _ = incoming.retry();
            continue;
        }
        let (www, case) = (Arc::clone(&www), args.case.clone());
        tokio::spawn(async move {
            // Data in 0-RTT waits for the handshake, then is there.
            let connection = match incoming.await {
                Ok(connection) => connection,
                Err(error) => return eprintln!("handshake: {error}"),
            };
            let paths = Paths::new(connection.clone());
            tokio::select! {
                () = peer_kit::server::serve(Transport::new(connection), www) => {}
                () = paths.follow() => {}
                () = multipath::watch(&paths, &case, true), if watches => {}
            }
        });
    }
    Ok(())
}
