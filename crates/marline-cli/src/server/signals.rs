//! The signals that stop a server, have it read its configuration again, or start the program that takes over.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::{Arc, mpsc};

use marline_http::log::{Level, Subject, emit};
use marline_http::server::Handle;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::{ServiceManager, Upgrader};
use crate::failure::Failure;

/// The action that a signal requests.
enum Request {
    /// The name of the signal.
    Stop(&'static str),
    Reload,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is no such signal"))]
    Upgrade,
}

/// An event that the server follows.
enum Event {
    Requested(Request),
    /// The configuration was read again, with this result.
    Reloaded(String),
    /// The program was started anew, and serves as the process of this ID.
    Upgraded(Result<(), Failure>),
}

/// The signals, received from now on.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    user_2: Signal,
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
            user_2: listen(SignalKind::user_defined2())?,
        })
    }

    async fn next(&mut self) -> Request {
        tokio::select! {
            _ = self.interrupt.recv() => Request::Stop("SIGINT"),
            _ = self.terminate.recv() => Request::Stop("SIGTERM"),
            _ = self.hang_up.recv() => Request::Reload,
            _ = self.user_2.recv() => Request::Upgrade,
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
        Request::Stop("Ctrl-C")
    }
}

impl Signals {
    /// Notifies `manager`, and stops the server of `handle` at the first signal, at once at the second, and calls `reload` when
    /// its configuration is to be read again, on a thread of its own: files may be on a disk that does not answer. `upgrader`
    /// starts another process that takes over. `stopping` is called before the server stops at a signal.
    pub(crate) async fn follow(
        mut self,
        handle: Handle,
        manager: ServiceManager,
        upgrader: Upgrader,
        reload: impl Fn() -> Result<(), Failure> + Send + Sync + 'static,
        stopping: impl FnOnce() + Send,
    ) {
        let reload = Arc::new(reload);
        let mut reloading: Option<JoinHandle<String>> = None;
        let mut upgrading: Option<JoinHandle<Result<(), Failure>>> = None;
        let mut again = false;
        // The signal that stops the server, unless another process has taken over.
        let stopped_by = loop {
            let event = tokio::select! {
                request = self.next() => Event::Requested(request),
                reloaded = ended(&mut reloading) => Event::Reloaded(
                    // The panic itself has been printed.
                    reloaded.unwrap_or_else(|| "reading the configuration again failed".to_owned()),
                ),
                upgraded = ended(&mut upgrading) => Event::Upgraded(upgraded.unwrap_or_else(|| {
                    Err(Failure::Failed("the upgrade failed".to_owned()))
                })),
            };
            let request = match event {
                Event::Requested(request) => request,
                Event::Reloaded(status) => {
                    manager.ready(&status);
                    match std::mem::take(&mut again) {
                        true => Request::Reload,
                        false => continue,
                    }
                }
                Event::Upgraded(Ok(())) => break None,
                Event::Upgraded(Err(reason)) => {
                    let text = format!("{reason}; this process goes on");
                    emit(Level::Error, Subject::Server, &text);
                    continue;
                }
            };
            match request {
                Request::Stop(signal) => break Some(signal),
                Request::Reload if reloading.is_some() => again = true,
                Request::Reload => {
                    manager.reloading();
                    let (reload, handle) = (Arc::clone(&reload), handle.clone());
                    let reloaded = move || report(reload(), &handle);
                    reloading = Some(tokio::task::spawn_blocking(reloaded));
                }
                Request::Upgrade if upgrading.is_some() => {
                    let text = "SIGUSR2 was ignored: another process takes over already";
                    emit(Level::Warning, Subject::Server, text);
                }
                Request::Upgrade => upgrading = Some(tokio::spawn(upgrader.clone().run())),
            }
        };
        if let Some(signal) = stopped_by {
            // The program that was started does not take over.
            if let Some(running) = upgrading {
                running.abort();
            }
            manager.stopping();
            let (grace, open) = (handle.shutdown_grace().as_secs(), handle.open());
            let text = format!("{signal}: the server stops within {grace} s; {open}");
            emit(Level::Information, Subject::Server, &text);
            stopping();
            handle.shut_down();
        }
        let signal = loop {
            if let Request::Stop(signal) = self.next().await {
                break signal;
            }
        };
        let text = format!("{signal}: the server stops at once; {}", handle.open());
        emit(Level::Information, Subject::Server, &text);
        handle.hurry();
    }
}

/// Completes with the result of the task when it has ended, which is removed then; `None` if it has panicked.
async fn ended<T>(task: &mut Option<JoinHandle<T>>) -> Option<T> {
    match task {
        Some(running) => {
            let result = running.await;
            *task = None;
            result.ok()
        }
        None => std::future::pending().await,
    }
}

/// Logs the outcome, and returns it.
fn report(reloaded: Result<(), Failure>, handle: &Handle) -> String {
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
    let logged = format!("{text}; {}", handle.open());
    emit(level, Subject::Configuration, &logged);
    text
}

/// Awaits `signals`, such as [`interrupted`](super::interrupted), and drops `caught` once they are caught: with the first poll.
pub(crate) async fn once_caught<T>(
    signals: impl Future<Output = T>,
    caught: mpsc::Sender<()>,
) -> T {
    let mut signals = pin!(signals);
    let mut caught = Some(caught);
    poll_fn(|context| {
        let polled = signals.as_mut().poll(context);
        caught = None;
        polled
    })
    .await
}
