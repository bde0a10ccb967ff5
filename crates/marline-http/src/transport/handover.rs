//! Passes data around h3 to a stream that h3 has no parameters for: priorities, and content without a copy.
//!
//! h3 wraps content into a `WriteBuf` that exposes its bytes but does not return them. The caller therefore
//! stores a second reference in a thread-local variable for the call in which h3 passes the content to the
//! stream; likewise the stream's priority. If they do not match, the content is copied.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::thread::LocalKey;

use bytes::Bytes;
use h3::error::StreamError;
use h3::quic;
use h3::server::RequestStream;
use http::Response;
use marline::Priority;

thread_local! {
    static CONTENT: Cell<Option<Bytes>> = const { Cell::new(None) };
    static PRIORITY: Cell<Option<Priority>> = const { Cell::new(None) };
}

/// Sends a response's header, and sets the priority of the stream.
pub(crate) async fn send_response<S>(
    stream: &mut RequestStream<S, Bytes>,
    response: Response<()>,
    priority: Priority,
) -> Result<(), StreamError>
where
    S: quic::SendStream<Bytes>,
{
    pass_on(&PRIORITY, priority, stream.send_response(response)).await
}

/// Sends `content` as one DATA frame.
pub(crate) async fn send_data<S>(
    stream: &mut RequestStream<S, Bytes>,
    content: Bytes,
) -> Result<(), StreamError>
where
    S: quic::SendStream<Bytes>,
{
    pass_on(&CONTENT, content.clone(), stream.send_data(content)).await
}

/// h3 passes the values to the stream when a call is polled first.
async fn pass_on<T, F: Future>(
    hand: &'static LocalKey<Cell<Option<T>>>,
    value: T,
    call: F,
) -> F::Output {
    let mut value = Some(value);
    let mut call = pin!(call);
    poll_fn(|cx| {
        hand.set(value.take());
        let done = call.as_mut().poll(cx);
        hand.set(None);
        done
    })
    .await
}

/// The stored content, if its bytes are exactly `shown`.
pub(super) fn content(shown: &[u8]) -> Option<Bytes> {
    CONTENT
        .take()
        .filter(|content| std::ptr::eq(&content[..], shown))
}

/// The stored priority for the stream that is being written.
pub(super) fn priority() -> Option<Priority> {
    PRIORITY.take()
}
