//! The keys of tickets and tokens, replaced while the server runs.

use std::sync::Arc;

use marline::TicketKey;

use super::{Context, SharedKeys, StateDirectory};
use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Subject};

/// Replaces the keys of a state directory each time they are old, until the server stops.
pub(super) async fn rotate_keys(state: Arc<StateDirectory>, context: Arc<Context>) {
    let runtime = &context.runtime;
    let mut wait = state.until_rotation(runtime.unix_time());
    while runtime.timeout(wait, context.stop.stopped()).await.is_err() {
        wait = match state.rotate(runtime.unix_time()) {
            Ok(wait) => wait,
            // The present keys stay in use.
            Err(error) => {
                context.metrics.rotation_failed();
                let text = format!("the keys were not replaced: {error}");
                messages::emit(Level::Error, Subject::Keys, &text);
                limits::ROTATION_RETRY
            }
        };
    }
}

/// Takes the keys of each day, until the server stops.
pub(super) async fn rotate_shared_keys(shared: Arc<SharedKeys>, context: Arc<Context>) {
    let runtime = &context.runtime;
    let mut wait = shared.rotate(runtime.unix_time());
    while runtime.timeout(wait, context.stop.stopped()).await.is_err() {
        wait = shared.rotate(runtime.unix_time());
    }
}

/// The key of the session tickets of a server, if it does not keep sessions in memory.
pub(super) fn tickets(
    state: Option<&Arc<StateDirectory>>,
    shared: Option<&Arc<SharedKeys>>,
) -> Option<Arc<TicketKey>> {
    shared
        .map(|shared| shared.tickets())
        .or_else(|| state.map(|state| state.tickets()))
}
