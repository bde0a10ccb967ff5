//! Connections of this client for which nothing has arrived yet: only these can be unreachable.

use std::sync::Arc;
use std::task::{Context, Poll};

use marline_proto::Instant;

use crate::connection::{ConnectionState, SharedConnection};
use crate::runtime::{UdpSocket, UnreachableReport};

/// The connections that await their first datagram. While there are any, the socket reports unreachable destinations;
/// otherwise forged ICMP messages cost it nothing.
#[derive(Default)]
pub(super) struct Unanswered(Vec<Arc<SharedConnection>>);

impl Unanswered {
    /// Adds `connection`, before its first datagram leaves, or removes it.
    pub(super) fn update(
        &mut self,
        connection: &Arc<SharedConnection>,
        state: &mut ConnectionState,
        socket: &dyn UdpSocket,
    ) {
        let is_open = !state.drained && state.error.is_none();
        let is_unanswered = is_open && state.proto.awaits_first_datagram();
        if is_unanswered == state.is_unanswered {
            return;
        }
        state.is_unanswered = is_unanswered;
        if is_unanswered {
            self.0.push(Arc::clone(connection));
            if self.0.len() == 1 {
                socket.report_unreachable(true);
            }
        } else {
            self.0.retain(|other| !Arc::ptr_eq(other, connection));
            if self.0.is_empty() {
                socket.report_unreachable(false);
            }
        }
    }

    /// Has another socket report unreachable destinations, if there are connections to end.
    pub(super) fn watch(&self, socket: &dyn UdpSocket) {
        if !self.0.is_empty() {
            socket.report_unreachable(true);
        }
    }

    /// The next report of the socket.
    pub(super) fn poll(
        &self,
        cx: &mut Context<'_>,
        socket: &dyn UdpSocket,
    ) -> Poll<UnreachableReport> {
        match self.0.is_empty() {
            true => Poll::Pending,
            false => socket.poll_unreachable(cx),
        }
    }

    /// Ends the connection that `report` is about, if there is one.
    pub(super) fn end(
        &self,
        now: Instant,
        report: &UnreachableReport,
    ) -> Option<&Arc<SharedConnection>> {
        let UnreachableReport {
            what,
            remote,
            ref quote,
        } = *report;
        self.0.iter().find(|connection| {
            let mut state = connection.lock();
            state.proto.handle_unreachable(now, what, remote, quote)
        })
    }
}
