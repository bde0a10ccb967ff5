//! The server: the product's own.

use marline::{RetryPolicy, Version, Versions};
use marline_http::server::{Identity, Protocols, Server, ServerConfig, directory};
use peer_kit::{Outcome, ServerArgs};
use tokio::signal::unix::{SignalKind, signal};

pub(crate) async fn run(args: &ServerArgs) -> Outcome {
    let identity = Identity::from_pem_files(&args.cert, &args.key)?;
    let site = directory(&args.www, false)?;
    let mut config = ServerConfig::new(args.listen, identity, site);
    config.protocols = Protocols {
        http1: false,
        http2: false,
        ..Protocols::default()
    };
    config.quic.retry = match args.case.as_str() {
        "retry" => RetryPolicy::Always,
        _ => RetryPolicy::Never,
    };
    config.quic.preferred_version = (args.case == "v2").then_some(Version::V2);
    if args.case == "versionnegotiation" {
        // Clients ask for version 2, if they have it.
        config.quic.versions = Versions::only(Version::V1);
    }
    config.quic.zero_rtt = args.case == "zerortt";
    config.qlog = crate::qlog_directory()?;

    let server = Server::bind(config).await?;
    eprintln!("listening on {}", server.local_addr());
    let handle = server.handle();
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        terminated.recv().await;
        handle.shut_down();
    });
    server.run().await?;
    Ok(())
}
