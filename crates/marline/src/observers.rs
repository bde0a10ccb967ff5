//! Combining observers of connections.

use std::sync::Arc;

use marline_proto::Instant;
use marline_proto::observe::{Event, Observer};

use crate::MakeObserver;

/// Makes observers that pass each event on to one of `first` and one of `second`, in this order.
pub fn both_observers(first: MakeObserver, second: MakeObserver) -> MakeObserver {
    Arc::new(
        move |connection| match (first(connection), second(connection)) {
            (Some(first), Some(second)) => {
                Some(Box::new(Both { first, second }) as Box<dyn Observer>)
            }
            (first, second) => first.or(second),
        },
    )
}

struct Both {
    first: Box<dyn Observer>,
    second: Box<dyn Observer>,
}

impl Observer for Both {
    fn on_event(&mut self, now: Instant, event: &Event<'_>) {
        self.first.on_event(now, event);
        self.second.on_event(now, event);
    }
}
