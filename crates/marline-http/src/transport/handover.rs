//! What h3 has no words for on its way to a stream: priorities, and content without a copy.
//!
//! h3 wraps content into a `WriteBuf` that shows its bytes but does not give them back. So the owner
//! hands over a second reference on the side, for as long as the one call takes in which h3 passes
//! the content down; likewise the stream's priority. Should they ever not match, the content is copied.

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

/// Sends a response's header, and gives it and its content this priority.
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

/// h3 passes things down when a call is polled first.
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

/// The owner of exactly the bytes of `shown`, if it is in hand.
pub(super) fn content(shown: &[u8]) -> Option<Bytes> {
    CONTENT
        .take()
        .filter(|content| std::ptr::eq(&content[..], shown))
}

/// The priority for the stream that is being written, if one is in hand.
pub(super) fn priority() -> Option<Priority> {
    PRIORITY.take()
}
