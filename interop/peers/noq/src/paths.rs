//! Several paths in one connection.

use std::collections::BTreeMap;
use std::net::IpAddr;

use noq::{Connection, FourTuple, PathEvent, PathId, PathStatus, TransportConfig};
use peer_kit::multipath::{self, Carried, Multipath, Opening};
use tokio_stream::StreamExt as _;

/// Maximum number of concurrent paths.
const MOST: u32 = 4;
/// Largest path ID in any case.
const LAST: u32 = 15;

/// Settings of an end in `case`.
pub(crate) fn transport(case: &str, serves: bool) -> TransportConfig {
    let mut config = TransportConfig::default();
    if multipath::is_wanted(case, serves) {
        config.max_concurrent_multipath_paths(MOST);
    }
    config
}

/// The paths of one connection.
pub(crate) struct Paths(Connection);

impl Paths {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Applies the peer's path status and abandonment, which noq leaves to the application.
    pub(crate) async fn follow(&self) {
        let mut events = self.0.path_events();
        while let Some(event) = events.next().await {
            if let Ok(PathEvent::RemoteStatus { id, status, .. }) = event
                && let Some(path) = self.0.path(id)
            {
                // The path may have been closed meanwhile.
                let _ = path.set_status(status);
            }
        }
        std::future::pending::<()>().await;
    }
}

impl Multipath for Paths {
    fn is_negotiated(&self) -> bool {
        self.0.is_multipath_enabled()
    }

    fn open(&self, from: IpAddr) -> Opening {
        let connection = self.0.clone();
        Box::pin(async move {
            connection.handshake_confirmed().await?;
            let path = connection
                .path(PathId::ZERO)
                .ok_or_else(|| anyhow::anyhow!("there is no first path"))?;
            let network = FourTuple::new(path.remote_address()?, Some(from));
            let opened = connection.open_path(network, PathStatus::Available).await?;
            (0..=LAST)
                .find(|id| PathId::from(*id) == opened.id())
                .ok_or_else(|| anyhow::anyhow!("path {} is one too many", opened.id()))
        })
    }

    fn set_backup(&self, path: u32) -> anyhow::Result<()> {
        self.path(path)?.set_status(PathStatus::Backup)?;
        Ok(())
    }

    fn abandon(&self, path: u32) -> anyhow::Result<()> {
        Ok(self.path(path)?.close()?)
    }

    fn paths(&self) -> BTreeMap<u32, Carried> {
        let carried = |id: u32| {
            let path = self.0.path(id.into())?;
            let stats = path.stats();
            let carried = Carried {
                sent: stats.udp_tx.bytes,
                received: stats.udp_rx.bytes,
            };
            Some((id, carried))
        };
        (0..=LAST).filter_map(carried).collect()
    }
}

impl Paths {
    fn path(&self, id: u32) -> anyhow::Result<noq::Path> {
        self.0
            .path(id.into())
            .ok_or_else(|| anyhow::anyhow!("there is no path {id}"))
    }
}
