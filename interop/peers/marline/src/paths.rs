//! Several paths in one connection.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use marline::{
    Connection, Endpoint, ErrorCode, MultipathConfig, OpenPathError, PathId, PathStatus,
    ServerConfig, TlsServerConfig, TransportConfig,
};
use marline_http::transport::qlog_observer;
use peer_kit::multipath::{self, Carried, Multipath, Opening};
use peer_kit::{Outcome, ServerArgs, tls};
use tokio::time::sleep;

/// An error that may be temporary.
const NOT_YET: marline::proto::OpenPathError = marline::proto::OpenPathError::NoConnectionIds;
/// Number of attempts, and the delay between them.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Settings of an end in `case`.
pub(crate) fn transport(case: &str, serves: bool) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        multipath: multipath::is_wanted(case, serves).then(MultipathConfig::default),
        ..TransportConfig::default()
    })
}

/// Serves on the library's endpoint as the server of the product does, and reports paths.
pub(crate) async fn serve(args: &ServerArgs) -> Outcome {
    let tls = tls::server_config(&args.case, &args.cert, &args.key)?;
    let mut config = ServerConfig::new(TlsServerConfig::new(Arc::new(tls))?);
    config.transport = transport(&args.case, true);
    config.observer = crate::qlog_directory()?.map(qlog_observer);
    let endpoint = Endpoint::server(config, args.listen)?;
    eprintln!("listening on {}", endpoint.local_addr());
    let www: Arc<Path> = args.www.as_path().into();
    while let Some(incoming) = endpoint.accept().await {
        let (www, case) = (Arc::clone(&www), args.case.clone());
        tokio::spawn(async move {
            let connection = match incoming.await {
                Ok(connection) => connection,
                Err(error) => return eprintln!("handshake: {error}"),
            };
            let paths = Paths::new(connection.clone());
            tokio::select! {
                () = peer_kit::server::serve(marline_h3_quic::Connection::new(connection), www) => {}
                () = multipath::watch(&paths, &case, true) => {}
            }
        });
    }
    Ok(())
}

/// The paths of one connection.
pub(crate) struct Paths(Connection);

impl Paths {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    fn path(&self, id: u32) -> anyhow::Result<PathId> {
        let exists = self.0.paths().iter().any(|path| path.id.0 == id);
        anyhow::ensure!(exists, "there is no path {id}");
        Ok(PathId(id))
    }
}

impl Multipath for Paths {
    fn is_negotiated(&self) -> bool {
        self.0.is_multipath()
    }

    fn open(&self, from: IpAddr) -> Opening {
        let connection = self.0.clone();
        Box::pin(async move {
            // The connection IDs for a path arrive from the peer soon after the handshake.
            for _ in 0..TRIES {
                match connection.open_path(from, None).await {
                    Err(OpenPathError::Refused(refused)) if refused == NOT_YET => {
                        sleep(PAUSE).await;
                    }
                    opened => return Ok(opened?.0),
                }
            }
            Err(NOT_YET.into())
        })
    }

    fn set_backup(&self, path: u32) -> anyhow::Result<()> {
        self.0.set_path_status(self.path(path)?, PathStatus::Backup);
        Ok(())
    }

    fn abandon(&self, path: u32) -> anyhow::Result<()> {
        let why = ErrorCode::APPLICATION_ABANDON_PATH;
        Ok(self.0.abandon_path(PathId(path), why)?)
    }

    fn paths(&self) -> BTreeMap<u32, Carried> {
        let carried = |path: &marline::PathStats| {
            let carried = Carried {
                sent: path.udp_sent.bytes,
                received: path.udp_received.bytes,
            };
            (path.id.0, carried)
        };
        self.0.paths().iter().map(carried).collect()
    }
}
