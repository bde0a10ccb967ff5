//! The inputs of an endpoint that come from others rather than from its socket.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline_proto::{EcnCodepoint, FourTuple};

use crate::connection::SharedConnection;
use crate::signal::Signal;

/// Bytes that wait for an endpoint, with their overhead: as many as are requested for the buffer of its socket. What does
/// not fit is dropped, as it would be there.
const MAX_WAITING: usize = 4 << 20;

/// A datagram on its way from the endpoint that received it to the one that has its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedDatagram {
    /// The addresses between which it was sent.
    pub tuple: FourTuple,
    /// The ECN codepoint of its IP header.
    pub ecn: Option<EcnCodepoint>,
    /// The UDP payload, as it was received.
    pub payload: Vec<u8>,
}

/// A datagram that waits in an inbox.
pub(super) enum Passed {
    /// Passed on by another worker: this one has its connection, or no worker has.
    ByWorker(PassedDatagram),
    /// Passed on by another process: any worker may have its connection.
    ByProcess(PassedDatagram),
}

impl Passed {
    /// The memory that it takes, in bytes.
    fn size(&self) -> usize {
        let (Self::ByWorker(datagram) | Self::ByProcess(datagram)) = self;
        size_of::<Self>() + datagram.payload.len()
    }
}

/// Takes datagrams of connections that this process does not have: see
/// [`Endpoint::set_predecessor`](super::Endpoint::set_predecessor).
pub trait PassOn: Send + Sync + std::fmt::Debug {
    /// Passes on `datagram`, or drops it; must not block.
    fn pass_on(&self, datagram: PassedDatagram);
}

/// The datagrams and orders that others have left for an endpoint.
pub(super) struct Inbox {
    signal: Arc<Signal<Arc<SharedConnection>>>,
    waiting: Mutex<Waiting>,
    /// Whether there may be datagrams: the driver takes the lock only then.
    is_filled: AtomicBool,
    /// Whether the protocol's endpoint has to be polled for orders of others.
    has_orders: AtomicBool,
}

#[derive(Default)]
struct Waiting {
    datagrams: VecDeque<Passed>,
    bytes: usize,
}

impl Inbox {
    /// The inbox of the endpoint whose driver `signal` wakes.
    pub(super) fn new(signal: Arc<Signal<Arc<SharedConnection>>>) -> Self {
        Self {
            signal,
            waiting: Mutex::default(),
            is_filled: AtomicBool::new(false),
            has_orders: AtomicBool::new(false),
        }
    }

    /// The signal that wakes the driver of its endpoint.
    pub(super) fn signal(&self) -> &Arc<Signal<Arc<SharedConnection>>> {
        &self.signal
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a datagram, unless too many wait.
    pub(super) fn push(&self, datagram: Passed) {
        let mut waiting = self.lock();
        let bytes = waiting.bytes + datagram.size();
        if bytes > MAX_WAITING {
            return;
        }
        waiting.bytes = bytes;
        waiting.datagrams.push_back(datagram);
        let was_filled = self.is_filled.swap(true, Ordering::AcqRel);
        drop(waiting);
        if !was_filled {
            self.signal.wake();
        }
    }

    /// Has the driver poll for orders.
    pub(super) fn order(&self) {
        if !self.has_orders.swap(true, Ordering::AcqRel) {
            self.signal.wake();
        }
    }

    /// Takes all datagrams; false if there were none.
    pub(super) fn take(&self, datagrams: &mut VecDeque<Passed>) -> bool {
        if !self.is_filled.load(Ordering::Acquire) {
            return false;
        }
        let mut waiting = self.lock();
        self.is_filled.store(false, Ordering::Release);
        waiting.bytes = 0;
        datagrams.append(&mut waiting.datagrams);
        true
    }

    /// Whether there are orders; false from now on.
    pub(super) fn take_orders(&self) -> bool {
        self.has_orders.load(Ordering::Acquire) && self.has_orders.swap(false, Ordering::AcqRel)
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    #[test]
    fn what_waits_is_bounded_in_bytes() {
        let inbox = Inbox::new(Arc::default());
        let addr = SocketAddr::from(([127, 0, 0, 1], 1));
        let datagram = |len| {
            Passed::ByWorker(PassedDatagram {
                tuple: FourTuple {
                    local: addr,
                    remote: addr,
                },
                ecn: None,
                payload: vec![0; len],
            })
        };
        let mut taken = VecDeque::new();
        for len in [0, 1, 1 << 16] {
            for _ in 0..2 * MAX_WAITING / (size_of::<Passed>() + len) {
                inbox.push(datagram(len));
            }
            assert!(inbox.take(&mut taken));
            let bytes: usize = taken.drain(..).map(|one| one.size()).sum();
            assert!(
                bytes <= MAX_WAITING && bytes > MAX_WAITING - (1 << 17),
                "{bytes}"
            );
        }
        assert!(!inbox.take(&mut taken));
    }
}
