//! One tunnel between a device and HTTP datagrams, in both directions.
//!
//! Hop limits are those of the kernel, which decrements them when it forwards between the device and another network; packets
//! of an end itself keep theirs.

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body::Frame;
use marline::SendDatagramError;
use marline_h3::capsule::{Capsule, CapsuleError, CapsuleParser, CapsuleType, KnownCapsule};
use marline_http::BoxError;
use marline_http::http3::Datagrams;
use tokio::sync::mpsc;

use crate::address::{ADDRESS_ASSIGN, ADDRESS_REQUEST, AddressError, MAX_ADDRESSES_BYTES};
use crate::copies::{self, Copied, Deduplication, Numbered};
use crate::counters::{Counters, Dropped};
use crate::device::{Burst, Device};
use crate::icmp;
use crate::offload::{Coalesced, MAX_PACKET};
use crate::packet::{Header, MIN_MTU};
use crate::queue::{Contained, PacketQueue};
use crate::route::{MAX_RANGES_BYTES, ROUTE_ADVERTISEMENT, RouteError};

/// The header field by which both ends agree on capsules (RFC 9297, section 3.4).
pub(crate) const CAPSULE_PROTOCOL: HeaderName = HeaderName::from_static("capsule-protocol");

/// Capsules that wait for the stream. Packets that are too large for a datagram are dropped beyond it.
const WAITING_CAPSULES: usize = 32;

/// Packets that are read from a device, or delivered to it, before other tasks have their turn.
pub(crate) const BATCH: usize = 64;

/// Bytes of datagrams in the send buffer of QUIC: what leaves at once. What waits longer is in the queue, which CoDel manages.
pub(crate) const SEND_BUFFER: usize = 32 * 1024;

/// The capsules of CONNECT-IP.
const KNOWN: &[KnownCapsule] = &[
    KnownCapsule {
        kind: CapsuleType::DATAGRAM,
        max_length: MAX_PACKET + 8,
    },
    KnownCapsule {
        kind: ADDRESS_ASSIGN,
        max_length: MAX_ADDRESSES_BYTES,
    },
    KnownCapsule {
        kind: ADDRESS_REQUEST,
        max_length: MAX_ADDRESSES_BYTES,
    },
    KnownCapsule {
        kind: ROUTE_ADVERTISEMENT,
        max_length: MAX_RANGES_BYTES,
    },
];

/// A parser of the capsules of CONNECT-IP, each up to the size that a tunnel takes.
pub fn capsule_parser() -> CapsuleParser {
    CapsuleParser::new(KNOWN)
}

/// Why the capsules of a peer are malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedCapsule {
    /// They are no sequence of capsules.
    #[error(transparent)]
    Capsule(#[from] CapsuleError),
    /// One about addresses.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// One about routes.
    #[error(transparent)]
    Route(#[from] RouteError),
}

/// Capsules as the content of a request or a response, which ends when their sender is dropped.
pub(crate) struct CapsuleContent(mpsc::Receiver<Bytes>);

impl http_body::Body for CapsuleContent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let bytes = self.0.poll_recv(cx);
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// The sender of capsules.
#[derive(Clone, Debug)]
pub(crate) struct Capsules(mpsc::Sender<Bytes>);

impl Capsules {
    /// A sender, and the content that it writes.
    pub(crate) fn new() -> (Self, CapsuleContent) {
        let (sender, receiver) = mpsc::channel(WAITING_CAPSULES);
        (Self(sender), CapsuleContent(receiver))
    }

    /// Sends a capsule when those before have been taken. Nothing happens if the stream has ended.
    pub(crate) async fn send(&self, capsule: &Capsule) {
        let _ = self.0.send(encoded(capsule)).await;
    }

    /// Sends a capsule unless too many wait; returns whether it did.
    pub(crate) fn try_send(&self, capsule: &Capsule) -> bool {
        self.0.try_send(encoded(capsule)).is_ok()
    }
}

fn encoded(capsule: &Capsule) -> Bytes {
    let mut bytes = Vec::new();
    capsule.encode(&mut bytes);
    bytes.into()
}

/// One end of a tunnel.
pub(crate) struct Link {
    pub(crate) datagrams: Datagrams,
    pub(crate) capsules: Capsules,
    pub(crate) queue: PacketQueue,
    pub(crate) counters: Arc<Counters>,
    /// Packets of the peer that may come twice; `None` if that was not agreed on.
    numbered: Option<Mutex<Deduplication>>,
}

impl Link {
    /// An end of a tunnel; `copies` are the packets that both ends send twice, if both take them.
    pub(crate) fn new(
        datagrams: Datagrams,
        capsules: Capsules,
        counters: Arc<Counters>,
        copies: Option<Copied>,
    ) -> Self {
        Self {
            datagrams,
            capsules,
            queue: PacketQueue::new(Arc::clone(&counters), copies),
            counters,
            numbered: copies.map(|_| Mutex::new(Deduplication::new())),
        }
    }

    /// The largest packet that is carried. One of [`MIN_MTU`] is in any case: as a capsule, if no datagram has room for it.
    pub(crate) fn mtu(&self) -> u16 {
        let datagram = self.datagrams.max_len().unwrap_or(0);
        // The context ID.
        let packet = u16::try_from(datagram.saturating_sub(1)).unwrap_or(u16::MAX);
        packet.max(MIN_MTU)
    }

    /// Queues a packet with this header.
    pub(crate) fn push(&self, header: &Header, packet: Contained) {
        self.queue.update(|paths| self.datagrams.paths(paths));
        self.queue.push(header, packet);
    }

    /// Sends the packets of the queues until the connection ends. Messages about packets that are too large go to `device`, as
    /// from one of the `routers`, or from their destination: an address of the host itself would be a martian, and one whose route
    /// does not lead to the device would not pass its reverse path filter.
    pub(crate) async fn send_all(&self, device: &dyn Device, routers: &[IpAddr]) {
        let mut release = pin!(tokio::time::sleep(Duration::ZERO));
        poll_fn(|cx| {
            loop {
                self.queue.register(cx.waker());
                if self.send_ready(cx, device, routers).is_err() {
                    return Poll::Ready(());
                }
                let Some(at) = self.queue.next_release() else {
                    return Poll::Pending;
                };
                release.as_mut().reset(at);
                ready!(release.as_mut().poll(cx));
            }
        })
        .await;
    }

    /// Sends what the paths take now.
    ///
    /// # Errors
    /// The connection has ended.
    fn send_ready(
        &self,
        cx: &mut Context<'_>,
        device: &dyn Device,
        routers: &[IpAddr],
    ) -> Result<(), SendDatagramError> {
        self.queue.update(|paths| self.datagrams.paths(paths));
        for path in self.queue.paths() {
            while let Some(packet) = self.queue.pop(path) {
                let length = packet.body.packet().len();
                let datagram = self.datagrams.encode(packet.body.payload());
                match self.datagrams.poll_send_on(cx, path, &datagram) {
                    Poll::Ready(Ok(())) if packet.body.is_copy() => self.counters.on_copied(),
                    Poll::Ready(Ok(())) => self.counters.on_sent(length),
                    Poll::Ready(Err(SendDatagramError::TooLarge { .. }))
                        if packet.body.is_copy() => {}
                    Poll::Ready(Err(SendDatagramError::TooLarge { .. })) => {
                        self.on_too_large(&packet.body, device, routers);
                    }
                    Poll::Ready(Err(SendDatagramError::NoPath)) => {
                        self.queue.put_back(path, packet);
                        if self.queue.on_failed(path) {
                            // Another has its packets now, which may have had its turn.
                            cx.waker().wake_by_ref();
                        }
                        break;
                    }
                    Poll::Ready(Err(error)) => return Err(error),
                    Poll::Pending => {
                        self.queue.put_back(path, packet);
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends a packet that no datagram has room for by a capsule (RFC 9297, section 3.5), if it must be carried or may not be
    /// refused; otherwise lets its sender know what would fit.
    fn on_too_large(&self, packet: &Contained, device: &dyn Device, routers: &[IpAddr]) {
        let Ok(header) = Header::parse(packet.packet()) else {
            return self.counters.on_dropped(Dropped::Malformed);
        };
        if packet.packet().len() <= usize::from(MIN_MTU) || !header.dont_fragment {
            let capsule = Capsule {
                kind: CapsuleType::DATAGRAM,
                value: Bytes::copy_from_slice(packet.payload()),
            };
            return match self.capsules.try_send(&capsule) {
                true => self.counters.on_sent(packet.packet().len()),
                false => self.counters.on_dropped(Dropped::Queue),
            };
        }
        self.counters.on_dropped(Dropped::TooLarge);
        let same_family = |router: &&IpAddr| router.is_ipv4() == header.source.is_ipv4();
        let router = routers.iter().find(same_family);
        let from = router.copied().unwrap_or(header.destination);
        let message = icmp::packet_too_big(packet.packet(), &header, self.mtu(), from);
        if let Some(message) = message {
            // It is one of many.
            let _ = device.send(&message);
        }
    }

    /// Receives datagrams until the request ends; `accept` says whether a packet with this header is delivered to `device`.
    pub(crate) async fn receive_all(
        &self,
        device: &dyn Device,
        accept: impl Fn(&Header) -> Result<(), Dropped>,
    ) {
        if !device.takes_large() {
            while let Some(datagram) = self.datagrams.recv().await {
                self.receive(&datagram, device, &accept);
            }
            return;
        }
        let mut coalesced = Coalesced::default();
        while let Some(datagram) = self.datagrams.recv().await {
            let more = std::iter::from_fn(|| self.datagrams.try_recv());
            for datagram in std::iter::once(datagram).chain(more).take(BATCH) {
                if let Some(Accepted { packet, header }) = self.accepted(&datagram, &accept) {
                    coalesced.push(packet, &header);
                }
            }
            coalesced.drain(|large| match device.send_with_header(large.bytes) {
                Ok(()) => self.counters.on_received(large.packets, large.length),
                Err(_) => {
                    (0..large.packets).for_each(|_| self.counters.on_dropped(Dropped::Device));
                }
            });
        }
    }

    /// Receives the payload of one datagram.
    pub(crate) fn receive(
        &self,
        datagram: &[u8],
        device: &dyn Device,
        accept: &impl Fn(&Header) -> Result<(), Dropped>,
    ) {
        if let Some(Accepted { packet, .. }) = self.accepted(datagram, accept) {
            match device.send(packet) {
                Ok(()) => self.counters.on_received(1, packet.len()),
                Err(_) => self.counters.on_dropped(Dropped::Device),
            }
        }
    }

    /// The packet of a datagram, if it is accepted and is the first of its number.
    fn accepted<'a>(
        &self,
        datagram: &'a [u8],
        accept: &impl Fn(&Header) -> Result<(), Dropped>,
    ) -> Option<Accepted<'a>> {
        if datagram.first() == Some(&copies::FILLER) {
            return None;
        }
        let numbered = self.numbered.as_ref().zip(Numbered::decode(datagram));
        let packet = match numbered {
            Some((window, Numbered { number, packet })) => {
                let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
                if !window.is_first(number) {
                    return None;
                }
                Ok(packet)
            }
            // Other contexts were not agreed on, and are dropped (RFC 9484, section 6).
            None => datagram.strip_prefix(&[0]).ok_or(Dropped::Malformed),
        };
        let accepted = packet.and_then(|packet| {
            let header = Header::parse(packet).map_err(|_| Dropped::Malformed)?;
            accept(&header)?;
            Ok(Accepted { packet, header })
        });
        accepted.map_err(|why| self.counters.on_dropped(why)).ok()
    }

    /// Queues the packets of a burst whose header this is.
    pub(crate) fn push_all(&self, header: &Header, burst: &mut Burst) -> usize {
        let packets = burst.packets(1, |packet| self.push(header, Contained::new(packet)));
        if packets == 0 {
            self.counters.on_dropped(Dropped::Malformed);
        }
        packets
    }
}

/// A packet that is delivered.
struct Accepted<'a> {
    packet: &'a [u8],
    header: Header,
}

/// Waits for what a device sends next.
pub(crate) async fn read(device: &dyn Device, burst: &mut Burst) -> std::io::Result<()> {
    poll_fn(|cx| device.poll_recv(cx, burst)).await
}
