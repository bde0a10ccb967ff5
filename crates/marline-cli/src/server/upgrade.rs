//! A program that takes over from this one, or from which this one takes over.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use marline::{Runtime, TokioRuntime};
use marline_http::log::{Level, Subject, emit};
use marline_http::server::{GivenSockets, Handle};
#[cfg(target_os = "linux")]
use marline_http::server::{Predecessor, upgrade};
use tokio::task::AbortHandle;

use super::{ServiceManager, pid_file};
use crate::failure::Failure;

/// The beginning of this process.
pub(crate) struct Origin {
    #[cfg(target_os = "linux")]
    predecessor: Option<Predecessor>,
    secret: [u8; 32],
}

impl Origin {
    /// That of this process. If it takes over from another, its sockets replace those that were `given`.
    ///
    /// # Errors
    /// The other process does not pass them on.
    pub(crate) async fn of_process(given: &mut GivenSockets) -> Result<Self, Failure> {
        #[cfg(target_os = "linux")]
        {
            let predecessor = Predecessor::of_process().await.map_err(|error| {
                Failure::Failed(format!("cannot take over from the process before: {error}"))
            })?;
            if let Some(mut predecessor) = predecessor {
                *given = predecessor.take_sockets();
                return Ok(Self {
                    secret: predecessor.secret(),
                    predecessor: Some(predecessor),
                });
            }
        }
        #[cfg(not(target_os = "linux"))]
        let _ = given;
        let seed = TokioRuntime::current().and_then(|runtime| runtime.seed());
        Ok(Self {
            #[cfg(target_os = "linux")]
            predecessor: None,
            secret: seed.map_err(|error| Failure::Failed(format!("cannot start: {error}")))?,
        })
    }

    /// Whether this process takes over from another.
    pub(crate) fn takes_over(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.predecessor.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// The secret of keys that are not in the state directory.
    pub(crate) fn secret(&self) -> [u8; 32] {
        self.secret
    }

    /// Takes over for `servers` if there is another process.
    ///
    /// # Errors
    /// It cannot be reached.
    pub(crate) async fn take_over(self, servers: &[Handle]) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        if let Some(predecessor) = self.predecessor {
            let taken = predecessor.take_over(servers).await;
            return taken.map_err(|error| {
                Failure::Failed(format!("cannot take over from the process before: {error}"))
            });
        }
        #[cfg(not(target_os = "linux"))]
        let _ = servers;
        Ok(())
    }
}

/// Starts the program anew to take over from this process.
#[derive(Clone)]
pub(crate) struct Upgrader {
    pub(crate) servers: Vec<Handle>,
    /// See [`Origin::secret`].
    pub(crate) secret: [u8; 32],
    pub(crate) manager: ServiceManager,
    /// The task that renews certificates, which ends with an upgrade.
    pub(crate) renewing: Option<AbortHandle>,
    /// The file with the ID of this process.
    pub(crate) pid_file: Option<PathBuf>,
}

impl Upgrader {
    /// Starts the program by the path and with the arguments of this process, and waits until it serves.
    ///
    /// # Errors
    /// It does not serve; this process does as before.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let serving = |process| {
            if let Some(renewing) = &self.renewing {
                renewing.abort();
            }
            self.manager.notify(&format!("MAINPID={process}"));
            let open = self.servers.first().map(Handle::open).unwrap_or_default();
            let text = format!(
                "process {process} serves from now on; this one ends with its connections: {open}"
            );
            emit(Level::Information, Subject::Server, &text);
        };
        let started = start(this_program(), &self.servers, self.secret, serving).await;
        if let (Err(_), Some(path)) = (&started, &self.pid_file)
            && let Err(reason) = pid_file::restore(path)
        {
            emit(Level::Warning, Subject::Server, &reason.to_string());
        }
        started
    }
}

/// The program of this process, which may have been replaced, with the same arguments.
fn this_program() -> Command {
    let mut arguments = env::args_os();
    let mut program = Command::new(arguments.next().unwrap_or_default());
    program.args(arguments);
    program
}

#[cfg(target_os = "linux")]
async fn start(
    program: Command,
    servers: &[Handle],
    secret: [u8; 32],
    serving: impl FnOnce(u32),
) -> Result<(), Failure> {
    let upgraded = upgrade(program, servers, secret, serving).await;
    upgraded.map_err(|error| Failure::Failed(error.to_string()))
}

#[cfg(not(target_os = "linux"))]
async fn start(
    _program: Command,
    _servers: &[Handle],
    _secret: [u8; 32],
    _serving: impl FnOnce(u32),
) -> Result<(), Failure> {
    let message = "another process can take over on Linux alone; start the server again";
    Err(Failure::Failed(message.to_owned()))
}
