//! Which requests are sent again, and how many.

use std::sync::{Mutex, PoisonError};

use http::StatusCode;

/// The number of requests that may be sent again at once, before their share of all is known.
const BURST: f64 = 10.0;

/// Bounds the requests that are sent again to a share of all, so that they do not multiply the load on applications that fail.
#[derive(Debug)]
pub(super) struct RetryBudget {
    share: f64,
    /// Requests that may be sent again now.
    left: Mutex<f64>,
}

impl RetryBudget {
    /// A budget of `share` of all requests.
    pub(super) fn new(share: f64) -> Self {
        let left = if share > 0.0 { BURST } else { 0.0 };
        Self {
            share,
            left: Mutex::new(left),
        }
    }

    /// A request is sent for the first time.
    pub(super) fn on_request(&self) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = (*left + self.share).min(BURST);
    }

    /// Whether one more request may be sent again, which it then is.
    pub(super) fn take(&self) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let is_left = *left >= 1.0;
        if is_left {
            *left -= 1.0;
        }
        is_left
    }
}

/// The reason why a request could be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setback {
    /// The application got nothing of it.
    Unsent,
    /// A connection that was open before ended before the response: the application has probably closed it while it was idle.
    Stale,
    /// A new connection ended before the response.
    Lost,
    /// The application answered that it cannot answer now.
    Unavailable,
}

impl Setback {
    pub(super) const ALL: [Self; 4] = [Self::Unsent, Self::Stale, Self::Lost, Self::Unavailable];

    /// Its name in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Unsent => "unsent",
            Self::Stale => "stale",
            Self::Lost => "lost",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A request as far as it matters for whether it is sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempted {
    /// Whether sending it twice has the effect of sending it once (RFC 9110, section 9.2.2).
    pub(super) is_idempotent: bool,
    /// Whether all of its content can be sent again.
    pub(super) is_whole: bool,
    /// Whether another application has not been tried yet.
    pub(super) has_another: bool,
}

impl Attempted {
    /// Whether it is sent again after `setback`.
    pub(super) fn is_repeated(self, setback: Setback, budget: &RetryBudget) -> bool {
        let may_repeat = self.is_idempotent && self.is_whole;
        match setback {
            // This costs no application anything.
            Setback::Unsent => self.is_whole && self.has_another,
            // Also at the same application.
            Setback::Stale => may_repeat,
            Setback::Lost => may_repeat && budget.take(),
            Setback::Unavailable => may_repeat && self.has_another && budget.take(),
        }
    }
}

/// Whether another application may answer where one answered with `status`.
pub(super) fn is_unavailable(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn retries_are_a_share_of_requests(share in 0.01..1.0_f64, requests in 0..2000_u32) {
            let budget = RetryBudget::new(share);
            let mut retries = 0;
            for _ in 0..requests {
                budget.on_request();
                while budget.take() {
                    retries += 1;
                }
            }
            let most = f64::from(requests) * share + BURST;
            prop_assert!(f64::from(retries) <= most + 1e-6, "{retries} of {requests}");
            prop_assert!(f64::from(retries) >= most - 2.0 || requests == 0);
        }
    }

    #[test]
    fn a_budget_that_is_not_used_does_not_grow() {
        let budget = RetryBudget::new(0.5);
        for _ in 0..1000 {
            budget.on_request();
        }
        let taken = std::iter::repeat_with(|| budget.take()).take_while(|taken| *taken);
        assert_eq!(taken.take(100).count(), 10);
    }

    #[test]
    fn a_request_is_sent_again_as_its_method_and_its_content_allow() {
        use Setback::{Lost, Stale, Unavailable, Unsent};

        let budget = RetryBudget::new(1.0);
        let none = RetryBudget::new(0.0);
        let attempted = |is_idempotent, is_whole, has_another| Attempted {
            is_idempotent,
            is_whole,
            has_another,
        };
        let get = attempted(true, true, true);
        let post = attempted(false, true, true);
        let begun = attempted(true, false, true);
        let only = attempted(true, true, false);
        for (request, repeated) in [
            (get, &[Unsent, Stale, Lost, Unavailable][..]),
            (post, &[Unsent]),
            (begun, &[]),
            (only, &[Stale, Lost]),
        ] {
            for setback in [Unsent, Stale, Lost, Unavailable] {
                let is_repeated = request.is_repeated(setback, &budget);
                assert_eq!(
                    is_repeated,
                    repeated.contains(&setback),
                    "{request:?}, {setback:?}"
                );
                let is_free = matches!(setback, Unsent | Stale);
                assert_eq!(request.is_repeated(setback, &none), is_repeated && is_free);
            }
        }
    }
}
