//! A pool of pipes to one origin.

mod losses;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use self::state::{Closing, ObjectId, Placed, State};
use super::{ObjectKind, PipeReport, PipeState, PipesConfig};
use crate::client::{Client, Connection, Lane, Origin};
use crate::runtime::RuntimeHandle;

/// Pipes to one origin. Each is a lane; those that are not open have no connection.
pub(crate) struct Pool {
    origin: Origin,
    lanes: Vec<Arc<Lane>>,
    runtime: RuntimeHandle,
    idle_timeout: Duration,
    state: Mutex<State>,
}

/// An object that is fetched on a pipe. The pipe has room for others once it is dropped.
pub(crate) struct Assigned {
    pool: Arc<Pool>,
    object: ObjectId,
}

impl Pool {
    /// A pool without an open pipe.
    pub(crate) fn new(config: &PipesConfig, origin: &Origin, runtime: &RuntimeHandle) -> Arc<Self> {
        let most = config.policy.max_pipes();
        Arc::new(Self {
            origin: origin.clone(),
            lanes: Lane::some(origin, most).collect(),
            runtime: runtime.clone(),
            idle_timeout: config.idle_timeout,
            state: Mutex::new(State::new(config, most)),
        })
    }

    /// A lane for each pipe that there may be.
    pub(crate) fn lanes(&self) -> &[Arc<Lane>] {
        &self.lanes
    }

    /// Whether no object is on a pipe.
    pub(crate) fn is_idle(&self) -> bool {
        self.state().is_idle()
    }

    /// Chooses a pipe for an object of `kind`. While the first pipe connects, it waits: nothing is known of the path
    /// before, and the object would wait for the same handshake.
    pub(crate) async fn place(
        self: &Arc<Self>,
        client: &Arc<Client>,
        kind: ObjectKind,
    ) -> Assigned {
        let first = {
            let mut state = self.state();
            match state.first_pipe() {
                Some(pipe) if self.lanes[pipe].current().is_none() => pipe,
                _ => return self.assign_in(&mut state, client, kind),
            }
        };
        // The request on it has the same error.
        let _ = self.lanes[first].open(client).await;
        self.assign(client, kind)
    }

    /// Chooses a pipe for an object of `kind`.
    pub(crate) fn assign(self: &Arc<Self>, client: &Arc<Client>, kind: ObjectKind) -> Assigned {
        self.assign_in(&mut self.state(), client, kind)
    }

    fn assign_in(
        self: &Arc<Self>,
        state: &mut State,
        client: &Arc<Client>,
        kind: ObjectKind,
    ) -> Assigned {
        let now = self.runtime.now();
        let connections: Vec<Option<Arc<Connection>>> =
            self.lanes.iter().map(|lane| lane.current()).collect();
        let Placed { object, spare } = state.place(now, kind, &connections);
        if let Some(pipe) = spare {
            self.open_spare(client, pipe);
        }
        Assigned {
            pool: Arc::clone(self),
            object,
        }
    }

    /// Opens a pipe in advance.
    fn open_spare(self: &Arc<Self>, client: &Arc<Client>, pipe: usize) {
        let (pool, client) = (Arc::clone(self), Arc::clone(client));
        self.runtime.spawn(async move {
            if pool.lanes[pipe].open(&client).await.is_err() {
                pool.state().spare_failed(pipe);
            }
        });
    }

    /// Closes `pipe` once it has been idle for long enough, unless the pool has ended before.
    async fn close_when_idle(
        pool: Weak<Self>,
        runtime: RuntimeHandle,
        pipe: usize,
        limit: Duration,
    ) {
        let mut wait = limit;
        loop {
            runtime.sleep(wait).await;
            let Some(pool) = pool.upgrade() else { return };
            let closing = pool.state().close_idle(pipe, runtime.now(), limit);
            match closing {
                Closing::Never => return,
                Closing::Later(left) => wait = left,
                Closing::Now(pipes) => {
                    for connection in pipes.iter().filter_map(|&pipe| pool.lanes[pipe].current()) {
                        connection.close();
                    }
                    return;
                }
            }
        }
    }

    /// A fetch or a page load is over: what it requested counts for the next.
    pub(crate) fn end_session(&self) {
        self.state().end_session();
    }

    /// The pipes that were opened.
    pub(crate) async fn reports(&self) -> Vec<PipeReport> {
        let totals = self.state().totals();
        let mut reports = Vec::new();
        for (pipe, total) in totals.into_iter().enumerate() {
            let connections = self.lanes[pipe].connections().await;
            if connections.is_empty() {
                continue;
            }
            reports.push(PipeReport {
                origin: self.origin.to_string(),
                pipe,
                state: match total.state {
                    PipeState::Used if total.objects == 0 => PipeState::Spare,
                    state => state,
                },
                connections: connections.iter().map(|one| one.id).collect(),
                objects: total.objects,
                bytes: total.bytes,
            });
        }
        reports
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Assigned {
    /// The index of its pipe's lane.
    pub(crate) fn pipe(&self) -> usize {
        self.object.pipe
    }

    /// The response announced `bytes` bytes.
    pub(crate) fn on_size(&self, bytes: u64) {
        self.pool.state().on_size(self.object, bytes);
    }

    /// `bytes` bytes have arrived.
    pub(crate) fn on_received(&self, bytes: u64) {
        let now = self.pool.runtime.now();
        self.pool.state().on_received(self.object, bytes, now);
    }
}

impl Drop for Assigned {
    fn drop(&mut self) {
        let pool = &self.pool;
        let needs_timer = pool.state().on_done(self.object, pool.runtime.now());
        if needs_timer {
            pool.runtime.spawn(Pool::close_when_idle(
                Arc::downgrade(pool),
                pool.runtime.clone(),
                self.object.pipe,
                pool.idle_timeout,
            ));
        }
    }
}
