//! The end of the connections of a server that stops.

use std::pin::pin;
use std::sync::Arc;

use http::Version;
use hyper_util::server::graceful::GracefulConnection;
use tokio::time::sleep;

use super::super::Context;
use super::super::progress::Progress;
use super::super::stop::Stopped;
use crate::limits;

/// Ends a connection gracefully when the server stops.
///
/// HTTP/2 has GOAWAY, of which hyper sends one for all streams first, and one with the last stream after a round trip (RFC 9113,
/// section 6.8). A client of HTTP/1.1 learns it from `Connection: close` of its next response, and may be sending a request
/// at any moment before: a connection that is idle waits for that.
pub(super) struct Drain {
    stopped: Stopped,
    progress: Arc<Progress>,
    version: Version,
}

impl Drain {
    pub(super) fn new(context: &Context, progress: Arc<Progress>, version: Version) -> Self {
        Self {
            stopped: context.stop.stopped(),
            progress,
            version,
        }
    }

    /// Completes when `connection` has ended.
    pub(super) async fn watch<C: GracefulConnection>(self, connection: C) -> Result<(), C::Error> {
        let mut connection = pin!(connection);
        let began = self.began();
        tokio::select! {
            biased;
            () = began => {}
            ended = connection.as_mut() => return ended,
        }
        connection.as_mut().graceful_shutdown();
        connection.await
    }

    /// Completes when the server has stopped, and no request is to be expected that was sent before the client knew it.
    async fn began(self) {
        self.stopped.await;
        if self.version == Version::HTTP_2 {
            return;
        }
        let mut left = limits::DRAIN;
        while !left.is_zero() {
            sleep(left).await;
            left = match self.progress.is_unused() {
                true => limits::DRAIN.saturating_sub(self.progress.idle()),
                // Its response may have begun before.
                false => limits::DRAIN,
            };
        }
    }
}
