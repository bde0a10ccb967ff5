//! A pool of pipes to one origin.

mod losses;
mod rates;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use self::state::{Closing, ObjectId, PipeTotal, Placed, State};
use super::{Client, ClientError, Connection, Origin, PooledConnection};
use crate::pipes::{ObjectKind, PipeReport, PipeState, PipesConfig};
use crate::runtime::RuntimeHandle;

/// Pipes to one origin. Each is a pooled connection; those that are not open have no connection.
pub(crate) struct Pool {
    origin: Origin,
    pooled_connections: Vec<Arc<PooledConnection>>,
    runtime: RuntimeHandle,
    idle_timeout: Duration,
    state: Mutex<State>,
}

/// An object that is fetched on a pipe. Dropping it frees its share of the pipe.
pub(crate) struct Assigned {
    pool: Arc<Pool>,
    object: ObjectId,
}

/// The pipes and connections that carried the objects of a fetch or page load.
#[derive(Default)]
pub(crate) struct Carried {
    /// The pipes that have a connection, or had one.
    pub(crate) pipes: Vec<PipeReport>,
    /// Their connections.
    pub(crate) connections: Vec<Arc<Connection>>,
}

/// A pool at a moment.
pub(crate) struct PoolNow {
    /// The origin that it leads to.
    pub(crate) origin: String,
    /// The pipes that have carried something or are open.
    pub(crate) pipes: Vec<PipeNow>,
}

/// A pipe at a moment.
pub(crate) struct PipeNow {
    /// Its number in the pool, from 0.
    pub(crate) pipe: usize,
    /// Its state, if it has a connection.
    pub(crate) open: Option<PipeState>,
    /// Objects that were assigned to it, since the pool was created.
    pub(crate) objects: u64,
    /// Bytes of content that it has carried since then.
    pub(crate) bytes: u64,
}

impl Pool {
    /// A pool without an open pipe.
    pub(crate) fn new(config: &PipesConfig, origin: &Origin, runtime: &RuntimeHandle) -> Arc<Self> {
        let most = config.policy.max_pipes();
        Arc::new(Self {
            origin: origin.clone(),
            pooled_connections: PooledConnection::some(origin, most).collect(),
            runtime: runtime.clone(),
            idle_timeout: config.idle_timeout,
            state: Mutex::new(State::new(config, most)),
        })
    }

    /// The pooled connections, one for each pipe up to the limit.
    pub(crate) fn pooled_connections(&self) -> &[Arc<PooledConnection>] {
        &self.pooled_connections
    }

    /// A fetch or a page load begins: pipes that closed before are not in its report.
    pub(crate) fn begin_session(&self) {
        let state = self.state();
        for (pooled, pipe) in self.pooled_connections.iter().zip(state.totals()) {
            if pipe.is_idle {
                pooled.forget_closed();
            }
        }
    }

    /// A request follows that belongs to no fetch or page load, as those of a gateway. All of these from the opening of the
    /// first pipe until all are closed count as a session. Forgets connections that are closed.
    pub(crate) fn continue_session(&self) {
        self.state().end_session_if_closed();
        for pooled in &self.pooled_connections {
            pooled.forget_closed();
        }
    }

    /// Chooses a pipe for an object of `kind`. While the first pipe connects, it waits: nothing is known of the path
    /// before, and the object would wait for the same handshake.
    ///
    /// # Errors
    /// The first pipe does not connect.
    pub(crate) async fn place(
        self: &Arc<Self>,
        client: &Arc<Client>,
        kind: ObjectKind,
    ) -> Result<Assigned, ClientError> {
        let first = {
            let mut state = self.state();
            match state.first_pipe() {
                Some(pipe) if self.pooled_connections[pipe].current().is_none() => pipe,
                _ => return Ok(self.assign_in(&mut state, client, kind)),
            }
        };
        self.pooled_connections[first].open(client).await?;
        Ok(self.assign(client, kind))
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
        let connections: Vec<Option<Arc<Connection>>> = self
            .pooled_connections
            .iter()
            .map(|pooled| pooled.current())
            .collect();
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
            let opened = pool.pooled_connections[pipe].open(&client).await;
            let mut state = pool.state();
            match opened {
                Err(_) => state.spare_failed(pipe),
                Ok(_) if state.is_closed(pipe) => pool.pooled_connections[pipe].close(),
                Ok(_) => {}
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
            let mut state = pool.state();
            match state.close_idle(pipe, runtime.now(), limit) {
                Closing::Never => return,
                Closing::Later(left) => wait = left,
                Closing::Now(pipes) => {
                    // Before another object can be placed there. A spare pipe that still connects closes after that.
                    for pipe in pipes {
                        pool.pooled_connections[pipe].close();
                    }
                    return;
                }
            }
        }
    }

    /// A fetch or a page load has ended: its requests count as history for the next. Returns its pipes and connections,
    /// without those that are still opening, and forgets those that are closed.
    pub(crate) fn end_session(&self) -> Carried {
        let mut state = self.state();
        state.end_session();
        let mut carried = Carried::default();
        for (pipe, total) in state.totals().into_iter().enumerate() {
            let connections = self.pooled_connections[pipe].connections();
            if total.is_idle {
                self.pooled_connections[pipe].forget_closed();
            }
            if connections.is_empty() {
                continue;
            }
            carried.pipes.push(self.report(pipe, &total, &connections));
            carried.connections.extend(connections);
        }
        carried
    }

    /// Its pipes that have a connection, or had one since the session began.
    pub(crate) fn reports(&self) -> Vec<PipeReport> {
        let totals = self.state().totals();
        let pipes = totals.into_iter().enumerate().filter_map(|(pipe, total)| {
            let connections = self.pooled_connections[pipe].connections();
            (!connections.is_empty()).then(|| self.report(pipe, &total, &connections))
        });
        pipes.collect()
    }

    fn report(
        &self,
        pipe: usize,
        total: &PipeTotal,
        connections: &[Arc<Connection>],
    ) -> PipeReport {
        PipeReport {
            origin: self.origin.to_string(),
            pipe,
            state: total.state,
            connections: connections.iter().map(|one| one.id).collect(),
            objects: total.objects,
            bytes: total.bytes,
        }
    }

    /// The present state of the pool.
    pub(crate) fn now(&self) -> PoolNow {
        let totals = self.state().totals();
        let pipes = totals.into_iter().zip(&self.pooled_connections).enumerate();
        let pipes = pipes
            .map(|(pipe, (total, pooled))| PipeNow {
                pipe,
                open: pooled.current().map(|_| total.state),
                objects: total.objects,
                bytes: total.bytes,
            })
            .filter(|pipe| pipe.open.is_some() || pipe.objects > 0)
            .collect();
        PoolNow {
            origin: self.origin.to_string(),
            pipes,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Assigned {
    /// The index of its pipe's pooled connection.
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
