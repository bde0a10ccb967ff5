//! One request of CONNECT-UDP: the payloads of a socket in both directions, which are the same at both ends.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use marline::SendDatagramError;
use marline_h3::capsule::{Capsule, CapsuleError, CapsuleParser, CapsuleType, KnownCapsule};
use marline_http::http3::Datagrams;
use marline_wire::Reader;
use tokio::time::{Instant, sleep_until};

use crate::link::Capsules;

/// The longest payload (RFC 9298, section 5).
const MAX_PAYLOAD: usize = 65_527;

/// The longest payload that is sent as a capsule although it is too large for a datagram: the size that QUIC needs (RFC 9000,
/// section 14), so that no search for a path's MTU takes it for room (RFC 9298, section 6.1).
const MIN_PAYLOAD: usize = 1200;

/// The context ID of payloads (RFC 9298, section 4), as it is encoded.
const CONTEXT: u8 = 0;

/// The time without payloads after which a flow ends: no shorter than a NAT should have (RFC 4787, section 4.3).
const IDLE: Duration = Duration::from_secs(120);

const KNOWN: &[KnownCapsule] = &[KnownCapsule {
    kind: CapsuleType::DATAGRAM,
    max_length: MAX_PAYLOAD + 1,
}];

/// One end of a request.
pub(super) struct Flow {
    /// `None` if the version of HTTP has none.
    datagrams: Option<Datagrams>,
    capsules: Capsules,
    last: Mutex<Instant>,
}

/// A payload, after room for its context ID.
pub(super) struct Buffer(Vec<u8>);

impl Buffer {
    pub(super) fn new() -> Self {
        Self(vec![CONTEXT; 1 + MAX_PAYLOAD])
    }

    /// The room for a payload.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.0[1..]
    }

    /// The content of a datagram with the first `length` bytes of the room as its payload.
    pub(super) fn content(&self, length: usize) -> &[u8] {
        &self.0[..=length]
    }
}

/// The treatment of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Queued,
    /// It is too large, or there is no room for it.
    Dropped,
    /// The request has ended.
    Ended,
}

impl Flow {
    pub(super) fn new(datagrams: Option<Datagrams>, capsules: Capsules) -> Self {
        Self {
            datagrams,
            capsules,
            last: Mutex::new(Instant::now()),
        }
    }

    /// A payload has come, or is sent.
    fn touch(&self) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Waits until there were no payloads for long.
    pub(super) async fn idle(&self) {
        loop {
            let last = *self.last.lock().unwrap_or_else(PoisonError::into_inner);
            let end = last + IDLE;
            if end <= Instant::now() {
                return;
            }
            sleep_until(end).await;
        }
    }

    /// Sends a [content](Buffer::content) when there is room for it.
    pub(super) async fn send(&self, content: &[u8]) -> Sent {
        self.touch();
        let with_datagrams = self.datagrams.as_ref();
        let room = with_datagrams.and_then(|datagrams| Some((datagrams, datagrams.max_len()?)));
        match room {
            Some((datagrams, max)) if content.len() <= max => {
                match datagrams.send(content).await {
                    Ok(()) => return Sent::Queued,
                    // The path has another MTU by now.
                    Err(SendDatagramError::TooLarge { .. }) => {}
                    Err(_) => return Sent::Ended,
                }
            }
            None => {
                self.capsules.send(&capsule(content)).await;
                return Sent::Queued;
            }
            Some(_) => {}
        }
        let is_needed = content.len() <= 1 + MIN_PAYLOAD;
        match is_needed && self.capsules.try_send(&capsule(content)) {
            true => Sent::Queued,
            false => Sent::Dropped,
        }
    }

    /// Passes the payloads of the peer's datagrams to `deliver` until that fails, or the request ends.
    pub(super) async fn receive(&self, deliver: impl Fn(&[u8]) -> Result<(), Gone>) {
        let Some(datagrams) = &self.datagrams else {
            return pending().await;
        };
        while let Some(content) = datagrams.recv().await {
            if self.pass(&content, &deliver).is_err() {
                return;
            }
        }
    }

    /// Passes the payloads of the peer's capsules to `deliver` until that fails, or the request ends.
    ///
    /// # Errors
    /// The capsules are malformed.
    pub(super) async fn read<B: Body<Data = Bytes> + Unpin>(
        &self,
        mut content: B,
        deliver: impl Fn(&[u8]) -> Result<(), Gone>,
    ) -> Result<(), CapsuleError> {
        let mut parser = CapsuleParser::new(KNOWN);
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut content).poll_frame(cx)).await {
            let Ok(frame) = frame else {
                return Ok(());
            };
            let Ok(data) = frame.into_data() else {
                continue;
            };
            parser.push(data);
            while let Some(capsule) = parser.next_capsule()? {
                if self.pass(&capsule.value, &deliver).is_err() {
                    return Ok(());
                }
            }
        }
        parser.finish()
    }

    fn pass(
        &self,
        content: &[u8],
        deliver: &impl Fn(&[u8]) -> Result<(), Gone>,
    ) -> Result<(), Gone> {
        match payload(content) {
            Some(payload) => {
                self.touch();
                deliver(payload)
            }
            None => Ok(()),
        }
    }
}

/// The socket of a flow is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gone;

fn capsule(content: &[u8]) -> Capsule {
    Capsule {
        kind: CapsuleType::DATAGRAM,
        value: Bytes::copy_from_slice(content),
    }
}

/// The payload of an HTTP datagram. Other contexts were not agreed on, and are dropped (RFC 9298, section 4).
fn payload(content: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader::new(content);
    let context = reader.varint().ok()?;
    (context == u64::from(CONTEXT)).then(|| reader.rest())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_the_context_zero() {
        assert_eq!(payload(b"\0abc"), Some(&b"abc"[..]));
        // Longer encodings of zero are allowed (RFC 9000, section 16).
        assert_eq!(payload(b"\x40\0abc"), Some(&b"abc"[..]));
        assert_eq!(payload(b"\0"), Some(&b""[..]));
        for other in [&b""[..], b"\x01abc", b"\x40", b"\x40\x01a"] {
            assert_eq!(payload(other), None, "{other:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_flow_without_payloads_ends_after_two_minutes() {
        let (capsules, _content) = Capsules::new();
        let flow = Flow::new(None, capsules);
        let began = Instant::now();
        let used = async {
            tokio::time::sleep(Duration::from_secs(100)).await;
            assert_eq!(flow.send(b"\0x").await, Sent::Queued);
            pending::<()>().await;
        };
        tokio::select! {
            () = used => {}
            () = flow.idle() => {}
        }
        assert_eq!(began.elapsed(), Duration::from_secs(220));
    }
}
