//! The content of responses of HTTP/2 on its way to the connection.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Buf;
use h2::{Reason, SendStream};
use http_body::{Body as _, Frame};
use tokio::time::{Instant, sleep_until, timeout};

use super::super::deliveries::{Content, Part, Sending};
use crate::body::BoxError;

/// The time of the latest activity in a tunnel, in either direction.
#[derive(Clone, Debug)]
pub(super) struct Activity(Arc<Mutex<Instant>>);

impl Activity {
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    pub(super) fn moved(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn last(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why a response ends early.
enum Cut {
    /// The stream was reset by the client, or its connection has ended.
    Gone,
    /// The site's content has failed.
    Failed,
    /// The client has taken too little of it for too long, or a tunnel is idle.
    Idle,
}

/// The content of one response, and the stream that it is sent on.
pub(super) struct Outgoing {
    content: Content,
    stream: SendStream<Part>,
    /// The activity of the tunnel, if it is one.
    activity: Option<Activity>,
    idle: Duration,
}

impl Outgoing {
    /// A stream that moves too little for `idle` is reset, whatever others of its connection do.
    pub(super) fn new(
        content: Content,
        stream: SendStream<Part>,
        activity: Option<Activity>,
        idle: Duration,
    ) -> Self {
        Self {
            content,
            stream,
            activity,
            idle,
        }
    }

    /// Sends the content, and waits until the connection has written it.
    pub(super) async fn run(mut self) {
        let Some(sending) = self.content.sending() else {
            return;
        };
        let sent = match self.send(&sending).await {
            Ok(()) => {
                let Self {
                    content,
                    mut stream,
                    activity,
                    idle,
                } = self;
                drop(content);
                let written = written(&mut stream, &sending, activity.is_some(), idle).await;
                written.map_err(|cut| (stream, cut))
            }
            Err(cut) => Err((self.stream, cut)),
        };
        match sent {
            Ok(()) | Err((_, Cut::Gone)) => {}
            Err((mut stream, Cut::Failed)) => stream.send_reset(Reason::INTERNAL_ERROR),
            Err((mut stream, Cut::Idle)) => stream.send_reset(Reason::CANCEL),
        }
    }

    async fn send(&mut self, sending: &Sending) -> Result<(), Cut> {
        loop {
            let frame = match self.next().await? {
                Some(frame) => frame.map_err(|_| Cut::Failed)?,
                None => return self.end(),
            };
            match frame.into_data() {
                Ok(part) => {
                    let is_end = self.content.is_end_stream();
                    if part.has_remaining() {
                        // h2 asks for the rest. More in advance would be taken from other streams.
                        self.stream.reserve_capacity(1);
                        self.capacity(sending).await?;
                    }
                    let sent = self.stream.send_data(part, is_end);
                    sent.map_err(|_| Cut::Gone)?;
                    self.activity.iter().for_each(Activity::moved);
                    if is_end {
                        return Ok(());
                    }
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        self.stream.reserve_capacity(0);
                        // Trailers that HTTP/2 forbids are the site's fault.
                        return self.stream.send_trailers(trailers).map_err(|_| Cut::Failed);
                    }
                }
            }
        }
    }

    fn end(&mut self) -> Result<(), Cut> {
        let sent = self.stream.send_data(self.content.end(), true);
        sent.map_err(|_| Cut::Gone)
    }

    /// The next part of the content, while the client wants it.
    async fn next(&mut self) -> Result<Option<Result<Frame<Part>, BoxError>>, Cut> {
        loop {
            let end = self
                .activity
                .as_ref()
                .map(|activity| activity.last() + self.idle);
            let next = poll_fn(|cx| {
                if self.stream.poll_reset(cx).is_ready() {
                    return Poll::Ready(Err(Cut::Gone));
                }
                let content = std::pin::Pin::new(&mut self.content);
                content.poll_frame(cx).map(Ok)
            });
            let Some(end) = end else {
                return next.await;
            };
            tokio::select! {
                biased;
                next = next => return next,
                () = sleep_until(end) => {}
            }
            if self
                .activity
                .as_ref()
                .is_some_and(|activity| activity.last() + self.idle <= end)
            {
                return Err(Cut::Idle);
            }
        }
    }

    /// Waits until the stream has capacity.
    async fn capacity(&mut self, sending: &Sending) -> Result<(), Cut> {
        let (idle, is_tunnel) = (self.idle, self.activity.is_some());
        if self.stream.capacity() > 0 {
            return Ok(());
        }
        loop {
            let capacity = poll_fn(|cx| poll_capacity(&mut self.stream, cx));
            match timeout(sending.patience(idle), capacity).await {
                Ok(result) => return result,
                Err(_) if sending.is_stuck(idle, is_tunnel) => return Err(Cut::Idle),
                Err(_) => {}
            }
        }
    }
}

fn poll_capacity(stream: &mut SendStream<Part>, cx: &mut Context<'_>) -> Poll<Result<(), Cut>> {
    if stream.poll_reset(cx).is_ready() {
        return Poll::Ready(Err(Cut::Gone));
    }
    while stream.capacity() == 0 {
        match ready!(stream.poll_capacity(cx)) {
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return Poll::Ready(Err(Cut::Gone)),
        }
    }
    Poll::Ready(Ok(()))
}

/// Waits until the connection has written what was passed to it.
async fn written(
    stream: &mut SendStream<Part>,
    sending: &Sending,
    is_tunnel: bool,
    idle: Duration,
) -> Result<(), Cut> {
    let mut poll_written = |cx: &mut Context<'_>| {
        if sending.poll_end(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        // It must also be woken when the client resets it.
        stream.poll_reset(cx).map(|_| Err(Cut::Gone))
    };
    // The connection's task can run now, and usually writes all of it then.
    if let Some(result) = twice(&mut poll_written).await {
        return result;
    }
    loop {
        match timeout(sending.patience(idle), poll_fn(&mut poll_written)).await {
            Ok(result) => return result,
            Err(_) if sending.is_stuck(idle, is_tunnel) => return Err(Cut::Idle),
            Err(_) => {}
        }
    }
}

/// Polls, and once more after other tasks that can run now have run: that takes no timer.
async fn twice<T>(mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
    let mut is_second = false;
    poll_fn(|cx| match poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if std::mem::replace(&mut is_second, true) => Poll::Ready(None),
        Poll::Pending => {
            cx.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}
