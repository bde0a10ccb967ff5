//! The time limit of a request.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use crate::failure::Failure;

/// The end of the time for a request with its response, if there is a limit.
pub(crate) struct TimeLimit(Option<Pin<Box<Sleep>>>);

impl TimeLimit {
    /// A limit that begins now, in the runtime of the caller.
    pub(crate) fn new(time: Option<Duration>) -> Self {
        Self(time.map(|time| Box::pin(sleep(time))))
    }

    /// The result of `work`, unless the time ends before.
    pub(crate) async fn within<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            match &mut self.0 {
                Some(end) => end.as_mut().poll(cx).map(|()| Err(too_long())),
                None => Poll::Pending,
            }
        })
        .await
    }
}

fn too_long() -> Failure {
    Failure::new("the request takes longer than max_time_ms allows")
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn a_request_ends_with_its_time() {
        let mut limit = TimeLimit::new(Some(Duration::from_millis(1)));
        let endless = pending::<Result<(), Failure>>();
        assert!(limit.within(endless).await.is_err());
        // So does reading its content.
        assert!(
            limit
                .within(pending::<Result<(), Failure>>())
                .await
                .is_err()
        );
        assert!(TimeLimit::new(None).within(ready(Ok(()))).await.is_ok());
    }
}
