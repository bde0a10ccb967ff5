//! The end of the HTTP/1.1 connections of a stopping server.

use std::pin::pin;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::service::HttpService;
use tokio::time::sleep;

use super::super::Context;
use super::super::progress::Progress;
use super::super::stop::Stopped;
use super::deliveries::Content;
use crate::body::BoxError;
use crate::limits;

/// Ends a connection gracefully when the server stops.
///
/// A client is notified by `Connection: close` of its next response, and may be sending a request at any moment before:
/// an idle connection waits for that.
pub(super) struct Drain {
    stopped: Stopped,
    progress: Arc<Progress>,
}

impl Drain {
    pub(super) fn new(context: &Context, progress: Arc<Progress>) -> Self {
        Self {
            stopped: context.stop.stopped(),
            progress,
        }
    }

    /// Completes when `connection` has ended.
    pub(super) async fn watch<I, S>(
        self,
        connection: UpgradeableConnection<I, S>,
    ) -> hyper::Result<()>
    where
        I: Read + Write + Unpin + Send + 'static,
        S: HttpService<Incoming, ResBody = Content>,
        S::Error: Into<BoxError>,
    {
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

    /// Completes when the server has stopped, and no request is expected that was sent before the client knew it.
    async fn began(self) {
        self.stopped.await;
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
