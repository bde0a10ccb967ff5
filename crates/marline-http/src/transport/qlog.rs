//! One qlog file per connection, within limits.

mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline::observe::events::{ConnectionState, ConnectionStateUpdated, PacketKind};
use marline::observe::qlog::{Header, VantagePoint};
use marline::observe::{Event, Observer, QlogWriter};
use marline::{ConnectionInfo, Instant, MakeObserver, Runtime, Side, TokioRuntime};

pub(crate) use self::file::Budget;
use self::file::{LogFile, Start};

/// The limits of the logs of a server or a client. Logging stops at the limit, which is reported once on standard
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QlogLimits {
    /// Files open at once.
    pub open_files: usize,
    /// Files created.
    pub files: u64,
    /// Bytes written.
    pub bytes: u64,
}

impl Default for QlogLimits {
    fn default() -> Self {
        Self {
            open_files: 500,
            files: 100_000,
            bytes: 10 << 30,
        }
    }
}

/// Logs into `directory`, within the default limits: `ID_SUFFIX_server.sqlog` or `ID_SUFFIX_client.sqlog`, where ID is
/// the original destination connection ID in hexadecimal and SUFFIX is random. No file is ever overwritten.
///
/// The file of a server's connection begins when a packet proves the address of the client, or the handshake is
/// complete; earlier events are kept up to a limit, and discarded with connections that never reach this point. A
/// connection whose file cannot be created has no log, and neither has a connection outside of tokio.
pub fn observer(directory: PathBuf) -> MakeObserver {
    let budget = Budget::new(QlogLimits::default());
    Arc::new(move |connection| {
        let runtime = TokioRuntime::current().ok()?;
        Some(begin(&runtime, &directory, &budget, connection))
    })
}

/// The same with the clock of `runtime` and within `budget`, which other observers may share.
pub(crate) fn observer_on(
    runtime: Arc<dyn Runtime>,
    directory: PathBuf,
    budget: Arc<Budget>,
) -> MakeObserver {
    Arc::new(move |connection| Some(begin(&*runtime, &directory, &budget, connection)))
}

fn begin(
    runtime: &dyn Runtime,
    directory: &Path,
    budget: &Arc<Budget>,
    connection: &ConnectionInfo,
) -> Box<dyn Observer> {
    let side = match connection.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    let id = connection.original_destination;
    let since_epoch = runtime.now().saturating_since(Instant::EPOCH);
    let header = Header {
        title: &format!("peer {}", connection.remote),
        vantage_point: VantagePoint {
            name: "marline",
            side: connection.side,
        },
        original_destination_connection_id: id,
        reference: Instant::EPOCH,
        wall_clock: runtime.unix_time().checked_sub(since_epoch),
    };
    let start = Start::default();
    if connection.side == Side::Client {
        start.permit();
    }
    let base = directory.join(id.to_string());
    let file = LogFile::new(base, side, Arc::clone(budget), start.clone());
    Box::new(ConnectionLog {
        writer: QlogWriter::new(file, &header),
        start,
    })
}

/// The log of a connection, whose file begins when the peer's address is validated.
struct ConnectionLog {
    writer: QlogWriter<LogFile>,
    start: Start,
}

impl Observer for ConnectionLog {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        let proves_address = match event {
            Event::PacketReceived(packet) => packet.kind == PacketKind::Handshake,
            Event::ConnectionStateUpdated(ConnectionStateUpdated { new, .. }) => {
                matches!(new, ConnectionState::HandshakeComplete)
            }
            _ => false,
        };
        if proves_address {
            self.start.permit();
        }
        self.writer.on_event(now, event);
        // Flushed, so that the bytes that an unvalidated peer causes are counted.
        if !self.start.is_permitted() {
            self.writer.flush();
        }
    }
}

#[cfg(test)]
mod tests;
