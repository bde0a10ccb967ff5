//! Systems whose sockets do not report which destination was unreachable.

use std::io;
use std::task::{Context, Poll};

use crate::runtime::UnreachableReport;

/// An error queue that is always empty.
#[derive(Debug, Default)]
pub(super) struct ErrorQueue;

impl ErrorQueue {
    pub(super) fn enable(&self, _: &tokio::net::UdpSocket, _: bool) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn is_pending(&self, _: &tokio::net::UdpSocket, _: &io::Error) -> bool {
        false
    }

    pub(super) fn poll(&self, _: &mut Context<'_>) -> Poll<UnreachableReport> {
        Poll::Pending
    }

    pub(super) fn poll_writable(
        &self,
        _: &mut Context<'_>,
        _: &tokio::net::UdpSocket,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
