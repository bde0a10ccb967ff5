//! The signals that stop a server, or have it read its configuration again.

use std::io;
use std::sync::Arc;

use marline_http::log::{Level, Subject, emit};
use marline_http::server::Handle;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::ServiceManager;
use crate::failure::Failure;

/// The action that a signal requests.
enum Request {
    Stop,
    Reload,
}

/// The signals, received from now on.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        let listen = |kind| {
            signal(kind).map_err(|error: io::Error| {
                Failure::Failed(format!("cannot receive signals: {error}"))
            })
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop,
            _ = self.terminate.recv() => Request::Stop,
            _ = self.hang_up.recv() => Request::Reload,
        }
    }
}

/// Ctrl-C.
#[cfg(not(unix))]
pub(crate) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(crate) fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn next(&mut self) -> Request {
        let _: io::Result<()> = tokio::signal::ctrl_c().await;
        Request::Stop
    }
}

impl Signals {
    /// Notifies `manager`, and stops the server of `handle` at the first signal, at once at the second, and calls `reload` when its configuration is to
    /// be read again, on a thread of its own: files may be on a disk that does not answer.
    pub(crate) async fn follow(
        mut self,
        handle: Handle,
        manager: ServiceManager,
        reload: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
    ) {
        let reload = Arc::new(reload);
        let mut reloading: Option<JoinHandle<String>> = None;
        let mut again = false;
        loop {
            let request = tokio::select! {
                request = self.next() => request,
                status = ended(&mut reloading) => {
                    manager.ready(&status);
                    match std::mem::take(&mut again) {
                        true => Request::Reload,
                        false => continue,
                    }
                }
            };
            match request {
                Request::Stop => break,
                Request::Reload if reloading.is_some() => again = true,
                Request::Reload => {
                    manager.reloading();
                    let reload = Arc::clone(&reload);
                    reloading = Some(tokio::task::spawn_blocking(move || report(reload())));
                }
            }
        }
        manager.stopping();
        handle.shut_down();
        while matches!(self.next().await, Request::Reload) {}
        handle.hurry();
    }
}

/// Completes with the report of the task when it has ended, which is removed then.
async fn ended(task: &mut Option<JoinHandle<String>>) -> String {
    match task {
        Some(running) => {
            let report = running.await;
            *task = None;
            // The panic itself has been printed.
            report.unwrap_or_else(|_| "reading the configuration again failed".to_owned())
        }
        None => std::future::pending().await,
    }
}

/// Logs the outcome, and returns it.
fn report(reloaded: Result<(), Failure>) -> String {
    let (level, text) = match reloaded {
        Ok(()) => (
            Level::Information,
            "read the configuration again".to_owned(),
        ),
        Err(reason) => (
            Level::Error,
            format!("{reason}; the configuration stays as it was"),
        ),
    };
    emit(level, Subject::Configuration, &text);
    text
}
