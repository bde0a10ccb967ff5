//! The signals that stop `serve`, or have it read its configuration again.

use std::io;

use marline_http::server::{Handle, ServerConfig};
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{Failure, print_message};

/// What a signal asks for.
enum Request {
    Stop,
    Reload,
}

/// The signals, received from now on.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
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
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn listen() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn next(&mut self) -> Request {
        let _: io::Result<()> = tokio::signal::ctrl_c().await;
        Request::Stop
    }
}

impl Signals {
    /// Stops the server of `handle` at the first signal, at once at the second, and replaces its configuration by what
    /// `read` returns when asked to.
    pub(super) async fn follow(
        mut self,
        handle: Handle,
        read: impl Fn() -> Result<ServerConfig, Failure>,
    ) {
        loop {
            match self.next().await {
                Request::Stop => break,
                Request::Reload => reload(&handle, &read),
            }
        }
        handle.shut_down();
        while matches!(self.next().await, Request::Reload) {}
        handle.hurry();
    }
}

fn reload(handle: &Handle, read: impl Fn() -> Result<ServerConfig, Failure>) {
    let reloaded = read()
        .and_then(|config| {
            let replaced = handle.reload(config);
            replaced.map_err(|error| Failure::Failed(error.to_string()))
        })
        .map_err(|failure| failure.to_string());
    match reloaded {
        Ok(()) => print_message("read the configuration again"),
        Err(reason) => print_message(&format!("{reason}; the configuration stays as it was")),
    }
}
