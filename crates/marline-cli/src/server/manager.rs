//! The service manager that has started this process, usually systemd: sd_notify(3), sd_watchdog_enabled(3).

use std::env;
use std::io;
use std::time::Duration;

#[cfg(target_os = "linux")]
use std::os::linux::net::SocketAddrExt;
#[cfg(unix)]
use std::os::unix::net::{SocketAddr, UnixDatagram};

use marline_http::log::{Level, Subject, emit};
use marline_http::server::{Handle, Server};

use crate::failure::Failure;

/// How long a message may wait for the manager.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_secs(2);

/// The service manager, if it wants to be notified. Crates that send such messages do not know abstract sockets.
#[derive(Clone, Debug)]
pub(crate) struct ServiceManager {
    /// The address of its socket.
    #[cfg(unix)]
    socket: Option<SocketAddr>,
    /// The time without a sign of life after which it restarts the service.
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// The manager that the environment names.
    ///
    /// # Errors
    /// `NOTIFY_SOCKET`, `WATCHDOG_USEC` or `WATCHDOG_PID` is not what it should be.
    pub(crate) fn of_environment() -> Result<Self, Failure> {
        let number = |name: &str| -> Result<Option<u64>, Failure> {
            let Some(text) = env::var_os(name) else {
                return Ok(None);
            };
            let number = text.to_str().and_then(|text| text.parse().ok());
            let wrong = || Failure::Usage(format!("{name} is not a number: {}", text.display()));
            number.ok_or_else(wrong).map(Some)
        };
        let watched = number("WATCHDOG_PID")?;
        let is_watched = watched.is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC")?.map(Duration::from_micros);
        Ok(Self {
            #[cfg(unix)]
            socket: socket().map_err(Failure::Usage)?,
            watchdog: watchdog.filter(|time| is_watched && !time.is_zero()),
        })
    }

    /// Sends `state`, lines of the form `KEY=VALUE`. A failure is logged.
    pub(crate) fn notify(&self, state: &str) {
        if let Err(error) = self.send(state) {
            let text = format!("the service manager was not notified: {error}");
            emit(Level::Warning, Subject::Server, &text);
        }
    }

    /// Reports that `server` listens, and that it lives, as often as the manager wants to hear it.
    pub(crate) fn started(&self, scheme: &str, server: &Server) {
        let addresses = server.local_addrs().iter();
        let urls: Vec<_> = addresses
            .map(|address| format!("{scheme}://{address}"))
            .collect();
        self.ready(&format!("listening on {}", urls.join(", ")));
        if let Some(limit) = self.watchdog {
            tokio::spawn(self.clone().keep_informed(server.handle(), limit));
        }
    }

    /// Reports that the service works; `status` is shown to operators.
    pub(crate) fn ready(&self, status: &str) {
        self.notify(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// Reports that the configuration is being read again.
    pub(crate) fn reloading(&self) {
        self.notify(&format!(
            "RELOADING=1\nMONOTONIC_USEC={}\nSTATUS=reading the configuration again",
            monotonic_usec()
        ));
    }

    /// Reports that the service ends.
    pub(crate) fn stopping(&self) {
        self.notify("STOPPING=1\nSTATUS=requests in progress finish");
    }

    /// Reports that the server of `handle` lives, within each `limit`, while all of its workers run.
    async fn keep_informed(self, handle: Handle, limit: Duration) {
        let mut is_blocked = false;
        loop {
            let is_running = tokio::time::timeout(limit / 2, handle.workers_run()).await;
            match is_running {
                Ok(()) => self.notify("WATCHDOG=1"),
                Err(_) if !is_blocked => {
                    let text = "a worker does not run; the service manager is not told that the server lives";
                    emit(Level::Error, Subject::Server, text);
                }
                Err(_) => {}
            }
            is_blocked = is_running.is_err();
            if !is_blocked {
                tokio::time::sleep(limit / 2).await;
            }
        }
    }

    #[cfg(unix)]
    fn send(&self, state: &str) -> io::Result<()> {
        let Some(address) = &self.socket else {
            return Ok(());
        };
        let socket = UnixDatagram::unbound()?;
        socket.set_write_timeout(Some(PATIENCE))?;
        socket.send_to_addr(state.as_bytes(), address)?;
        Ok(())
    }

    #[cfg(not(unix))]
    #[expect(clippy::unnecessary_wraps, reason = "it can fail on Unix")]
    fn send(&self, _state: &str) -> io::Result<()> {
        Ok(())
    }
}

/// The address in `NOTIFY_SOCKET`: an absolute path, or `@` and the name of an abstract socket.
#[cfg(unix)]
fn socket() -> Result<Option<SocketAddr>, String> {
    use std::os::unix::ffi::OsStrExt;

    let Some(name) = env::var_os("NOTIFY_SOCKET").filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let address = match name.as_bytes() {
        #[cfg(target_os = "linux")]
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest),
        [b'/', ..] => SocketAddr::from_pathname(&name),
        _ => Err(io::ErrorKind::Unsupported.into()),
    };
    let wrong = |error| {
        let name = name.display();
        format!("NOTIFY_SOCKET is neither an absolute path nor an abstract socket: {name}: {error}")
    };
    address.map(Some).map_err(wrong)
}

/// The clock that the manager compares with its own.
fn monotonic_usec() -> u128 {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::try_from(now).unwrap_or_default().as_micros()
    }
    #[cfg(not(target_os = "linux"))]
    0
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}
