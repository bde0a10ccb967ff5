//! The server.

use std::path::Path;
use std::sync::Arc;

use peer_kit::{Outcome, ServerArgs, tls};
use s2n_quic::Server;
use s2n_quic::provider::endpoint_limits::{self, ConnectionAttempt, Limiter};
use s2n_quic::provider::tls::rustls;

use crate::transport::Transport;

/// Whether clients prove their addresses first.
struct Retries(bool);

impl Limiter for Retries {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt<'_>) -> endpoint_limits::Outcome {
        match self.0 {
            true => endpoint_limits::Outcome::retry(),
            false => endpoint_limits::Outcome::allow(),
        }
    }
}

pub(crate) async fn run(args: &ServerArgs) -> Outcome {
    let tls = tls::server_config(&args.case, &args.cert, &args.key)?;
    let mut server = Server::builder()
        .with_tls(rustls::Server::from(tls))?
        .with_io(args.listen)?
        .with_limits(crate::limits()?)?
        .with_endpoint_limits(Retries(args.case == "retry"))?
        .start()
        .map_err(anyhow::Error::from)?;
    eprintln!("listening on {}", server.local_addr()?);
    let www: Arc<Path> = args.www.as_path().into();
    while let Some(connection) = server.accept().await {
        let transport = Transport::new(connection);
        tokio::spawn(peer_kit::server::serve(transport, Arc::clone(&www)));
    }
    Ok(())
}
