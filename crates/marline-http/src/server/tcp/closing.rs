//! The end of a connection.

use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use super::deliveries::Deliveries;
use crate::limits;

/// A socket that is closed when this is dropped.
///
/// The system resets a socket with unread bytes, or one at which bytes arrive after it was closed: sent data that has not
/// arrived is lost, and some client systems discard data that has (RFC 9112, section 9.6). A client that still sends, if only
/// WINDOW_UPDATE, would lose the end of its last response.
pub(in crate::server) struct Closing {
    stream: Arc<TcpStream>,
    deliveries: Deliveries,
    /// Time of the latest moved bytes.
    moved: Instant,
    is_shut_down: bool,
}

impl Closing {
    pub(super) fn new(
        stream: Arc<TcpStream>,
        deliveries: Deliveries,
        moved: Instant,
        is_shut_down: bool,
    ) -> Self {
        Self {
            stream,
            deliveries,
            moved,
            is_shut_down,
        }
    }

    /// Reads and discards bytes of the client until it has everything and closes its side too, within limits. It gets `idle`
    /// to acknowledge some of the sent bytes, and `quiet` to send something or to close once it has acknowledged all.
    pub(super) async fn linger(mut self, idle: Duration, quiet: Duration) {
        let is_expelled = self.deliveries.is_expelled();
        let idle = match self.is_shut_down && !is_expelled {
            true => idle,
            // The connection has failed: the last data sent may give the reason.
            false => limits::LINGER,
        };
        let longest = match is_expelled {
            true => limits::LINGER,
            false => limits::MAX_LINGER,
        };
        // Fails if the client has reset the connection.
        let _ = SockRef::from(&*self.stream).shutdown(Shutdown::Write);
        let mut wait = limits::MIN_POLL_INTERVAL;
        let mut unacknowledged = u64::MAX;
        let mut all_acknowledged: Option<Instant> = None;
        let mut client_has_ended = false;
        let mut left = limits::MAX_LINGER_BYTES;
        loop {
            let now = Instant::now();
            let missing = self.deliveries.refresh();
            if missing == 0 {
                all_acknowledged.get_or_insert(now);
            }
            // Single bytes are not progress.
            if missing == 0 && unacknowledged > 0
                || unacknowledged - missing >= limits::MIN_PROGRESS_BYTES
            {
                if unacknowledged < u64::MAX {
                    self.moved = now;
                }
                unacknowledged = missing;
            }
            if client_has_ended && (missing == 0 || self.deliveries.is_over()) {
                return;
            }
            let end = match all_acknowledged {
                Some(since) => (self.moved + quiet).min(since + longest),
                None => self.moved + idle,
            };
            if now >= end {
                return;
            }
            let next = match all_acknowledged {
                Some(_) => end,
                None => end.min(now + wait),
            };
            wait = (2 * wait).min(limits::MAX_POLL_INTERVAL);
            tokio::select! {
                biased;
                ready = self.stream.readable(), if !client_has_ended => match ready.and_then(|()| self.discard()) {
                    Ok(0) => client_has_ended = true,
                    Ok(bytes) => {
                        let Some(rest) = left.checked_sub(bytes) else { return };
                        left = rest;
                        if all_acknowledged.is_some() {
                            self.moved = Instant::now();
                        }
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                    Err(_) => return,
                },
                () = sleep_until(next) => {}
            }
        }
    }

    fn discard(&self) -> std::io::Result<usize> {
        let mut discarded = [0; 16 * 1024];
        self.stream.try_read(&mut discarded)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.deliveries.close();
    }
}
