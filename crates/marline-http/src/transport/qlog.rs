//! One qlog file per connection.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline::observe::qlog::{Header, VantagePoint};
use marline::observe::{Observer, QlogWriter};
use marline::{ConnectionInfo, Instant, MakeObserver, Runtime, Side, TokioRuntime};

/// Logs into `directory`: `ID_server.sqlog` or `ID_client.sqlog`, where ID is the original destination
/// connection ID in hexadecimal. A connection whose file cannot be created has no log, and neither has a
/// connection outside of tokio.
pub fn observer(directory: PathBuf) -> MakeObserver {
    Arc::new(move |connection| {
        let runtime = TokioRuntime::current().ok()?;
        begin(&runtime, &directory, connection)
    })
}

/// The same with the clock of `runtime`.
pub(crate) fn observer_on(runtime: Arc<dyn Runtime>, directory: PathBuf) -> MakeObserver {
    Arc::new(move |connection| begin(&*runtime, &directory, connection))
}

fn begin(
    runtime: &dyn Runtime,
    directory: &Path,
    connection: &ConnectionInfo,
) -> Option<Box<dyn Observer>> {
    let side = match connection.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    let id = connection.original_destination;
    let file = File::create(directory.join(format!("{id}_{side}.sqlog"))).ok()?;
    let since_epoch = runtime.now().saturating_since(Instant::EPOCH);
    let header = Header {
        title: &format!("{side} and {}", connection.remote),
        vantage_point: VantagePoint {
            name: "marline",
            side: connection.side,
        },
        original_destination_connection_id: id,
        reference: Instant::EPOCH,
        wall_clock: runtime.unix_time().checked_sub(since_epoch),
    };
    Some(Box::new(QlogWriter::new(file, &header)))
}
