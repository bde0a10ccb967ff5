use std::io::IoSliceMut;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use marline_proto::FourTuple;

use super::*;
use crate::runtime::RecvMeta;

/// One call of `try_send`: bytes and segment size.
type Sent = (usize, Option<usize>);

/// A socket that records what it sends, and can be full or lack segmentation.
#[derive(Debug)]
struct Fake {
    sent: Mutex<Vec<Sent>>,
    full: AtomicBool,
    segments: AtomicUsize,
    /// Whether its address is no longer available.
    moved: AtomicBool,
}

impl UdpSocket for Fake {
    fn try_send(&self, transmit: &Transmit, payload: &[u8]) -> io::Result<()> {
        if self.full.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.moved.load(Ordering::Relaxed) && !transmit.tuple.local.ip().is_unspecified() {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        let mut sent = self.sent.lock().unwrap();
        sent.push((payload.len(), transmit.segment_size));
        // A network card that does not support segmentation.
        if transmit.segment_size.is_some() && self.segments.load(Ordering::Relaxed) == 64 {
            self.segments.store(1, Ordering::Relaxed);
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(())
    }

    fn poll_send_ready(&self, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.full.load(Ordering::Relaxed) {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }

    fn poll_recv(
        &self,
        _cx: &mut Context<'_>,
        _buffers: &mut [IoSliceMut<'_>],
        _meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(SocketAddr::from(([127, 0, 0, 1], 1)))
    }

    fn max_gso_segments(&self) -> usize {
        self.segments.load(Ordering::Relaxed)
    }
}

fn flush(segments: usize, size: usize, segment: Option<usize>) -> Vec<Sent> {
    let fake = Fake {
        sent: Mutex::default(),
        full: AtomicBool::new(true),
        segments: AtomicUsize::new(segments),
        moved: AtomicBool::new(false),
    };
    flush_to(fake, size, segment, true)
}

fn flush_to(fake: Fake, size: usize, segment: Option<usize>, is_pinned: bool) -> Vec<Sent> {
    let fake = Arc::new(fake);
    let socket: Arc<dyn UdpSocket> = fake.clone();
    let addr = SocketAddr::from(([127, 0, 0, 1], 1));
    let mut outgoing = OutgoingBatch {
        buffer: vec![0; size],
        ..OutgoingBatch::default()
    };
    let batch = Transmit {
        tuple: FourTuple {
            local: addr,
            remote: addr,
        },
        ecn: None,
        size,
        segment_size: segment,
    };
    outgoing.start(ConnectionHandle(0), batch, socket, is_pinned);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(outgoing.poll_flush(&mut cx).is_pending());
    fake.full.store(false, Ordering::Relaxed);
    assert!(outgoing.poll_flush(&mut cx).is_ready());
    assert!(outgoing.poll_flush(&mut cx).is_ready());
    let sent = fake.sent.lock().unwrap();
    sent.clone()
}

#[test]
fn a_full_socket_keeps_the_batch() {
    assert_eq!(flush(10, 5000, Some(1200)), [(5000, Some(1200))]);
    assert_eq!(flush(10, 1200, None), [(1200, None)]);
}

#[test]
fn no_send_is_longer_than_udp_allows() {
    let segment = 1472;
    assert_eq!(
        flush(63, 60 * segment, Some(segment)),
        [(44 * segment, Some(segment)), (16 * segment, Some(segment))]
    );
}

#[test]
fn datagrams_are_sent_singly_once_segmentation_has_failed() {
    // The datagrams of the failed send are lost.
    assert_eq!(
        flush(64, 100 * 1400, Some(1400))[..3],
        [(46 * 1400, Some(1400)), (1400, None), (1400, None)]
    );
}

#[test]
fn only_unpinned_batches_are_sent_from_another_source_address() {
    for is_pinned in [true, false] {
        let fake = Fake {
            sent: Mutex::default(),
            full: AtomicBool::new(true),
            segments: AtomicUsize::new(10),
            moved: AtomicBool::new(true),
        };
        let sent = flush_to(fake, 1200, None, is_pinned);
        assert_eq!(sent.len(), usize::from(!is_pinned));
    }
}
