//! The side of the process that is replaced.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::super::reload::QuicEndpoint;
use super::super::{Context, Handle};
use super::channel::{Channel, MAX_DESCRIPTORS};
use super::message::{
    GO, Hello, MAX_MESSAGE, OfEndpoint, RUNNING, SERVING, SOCKETS, decode_datagram, decode_ready,
};
use super::{VARIABLE, take_over_sessions};
use crate::limits;

/// The reason why an upgrade failed. This process serves as before.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The sockets cannot be passed on.
    #[error("the sockets cannot be passed on: {0}")]
    Sockets(io::Error),
    /// The program cannot be started.
    #[error("{program} cannot be started: {cause}")]
    Start {
        /// The program.
        program: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// The new process has ended.
    #[error("the new process has ended ({0}); it has printed why")]
    Ended(ExitStatus),
    /// The new process does not get ready.
    #[error("the new process was not ready after {} seconds, and was ended", .0.as_secs())]
    Late(Duration),
    /// The two processes cannot exchange messages.
    #[error("the other process cannot be reached: {0}")]
    Channel(#[from] io::Error),
    /// The server stops.
    #[error("this server stops")]
    Stopping,
}

/// Starts `program`, which takes over from `servers`: it gets their sockets and `secret`, of which their keys are made. When it
/// serves, `serving` is called with its process ID; then they accept no more connections, and end with those that they have.
///
/// The program calls [`Predecessor::of_process`](super::Predecessor::of_process).
///
/// # Errors
/// It was not started, has ended, or did not get ready. `servers` go on then. The same if the returned future is dropped.
pub async fn upgrade(
    program: Command,
    servers: &[Handle],
    secret: [u8; 32],
    serving: impl FnOnce(u32),
) -> Result<(), UpgradeError> {
    let contexts = servers.iter().map(|handle| handle.context.upgrade());
    let contexts: Option<Vec<_>> = contexts.collect();
    let is_stopping = |context: &Arc<Context>| context.stop.is_stopping();
    let contexts = contexts.filter(|all| !all.iter().any(is_stopping));
    let contexts = contexts.ok_or(UpgradeError::Stopping)?;
    let mut sockets = Vec::new();
    for context in &contexts {
        let of_context = context.sockets().map_err(UpgradeError::Sockets)?;
        sockets.extend(of_context);
    }
    let (channel, other) = Channel::pair()?;
    // Before it starts: it has them even if this process ends meanwhile, and may not be allowed to bind its own.
    let sent = send_sockets(&channel, &sockets, secret);
    let sent = timeout(limits::UPGRADE_TAKE_OVER, sent).await;
    sent.map_err(io::Error::from)??;
    drop(sockets);
    let mut process = Starting::start(program, other)?;
    let ready = receive_ready(&channel);
    let taken = process.within(limits::UPGRADE_START, ready).await?;
    let paused = Paused::begin(&contexts, &taken).await;
    let taking_over = async {
        channel.send(GO, &[]).await?;
        expect(&channel, SERVING).await
    };
    process
        .within(limits::UPGRADE_TAKE_OVER, taking_over)
        .await?;
    let (report, runs) = oneshot::channel();
    let delivered_to = contexts.iter().map(Arc::downgrade).collect();
    let mut delivering = JoinSet::new();
    delivering.spawn(deliver(channel, delivered_to, report));
    let running = async { runs.await.map_err(|_| io::ErrorKind::UnexpectedEof.into()) };
    process.within(limits::UPGRADE_TAKE_OVER, running).await?;
    paused.keep();
    delivering.detach_all();
    // Before the servers end, and this process with them.
    serving(process.keep());
    for context in &contexts {
        context.hand_over();
    }
    Ok(())
}

/// The addresses of the endpoints that the other process has taken, once it is ready.
async fn receive_ready(channel: &Channel) -> io::Result<Vec<SocketAddr>> {
    let mut message = vec![0; MAX_MESSAGE];
    match channel.receive(&mut message, &mut Vec::new()).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        len => decode_ready(&message[..len]),
    }
}

async fn send_sockets(channel: &Channel, sockets: &[OwnedFd], secret: [u8; 32]) -> io::Result<()> {
    let hello = Hello {
        sockets: sockets.len(),
        secret,
    };
    channel.send(&hello.encode()?, &[]).await?;
    let sockets: Vec<_> = sockets.iter().map(AsFd::as_fd).collect();
    for part in sockets.chunks(MAX_DESCRIPTORS) {
        channel.send(SOCKETS, part).await?;
    }
    Ok(())
}

/// Waits for the message `expected`; an end of the other process is an error.
async fn expect(channel: &Channel, expected: &[u8]) -> io::Result<()> {
    let mut message = [0; 1];
    let len = channel.receive(&mut message, &mut Vec::new()).await?;
    match &message[..len] {
        [] => Err(io::ErrorKind::UnexpectedEof.into()),
        message if message == expected => Ok(()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Delivers the datagrams of the new process until it ends, or the servers do. Reports that it accepts connections.
async fn deliver(channel: Channel, contexts: Vec<Weak<Context>>, report: oneshot::Sender<()>) {
    let mut report = Some(report);
    let mut message = vec![0; MAX_MESSAGE];
    loop {
        let received = channel.receive(&mut message, &mut Vec::new()).await;
        let Ok(len @ 1..) = received else { return };
        if message[..len] == *RUNNING {
            // Nobody waits after the time for it.
            let _ = report.take().map(|report| report.send(()));
            continue;
        }
        let Some(OfEndpoint { bound, datagram }) = decode_datagram(&message[..len]) else {
            continue;
        };
        let contexts: Vec<_> = contexts.iter().filter_map(Weak::upgrade).collect();
        if contexts.is_empty() {
            return;
        }
        let mut endpoints = contexts.iter().flat_map(|context| &context.endpoints);
        let here = endpoints.find_map(|quic| quic.at(bound));
        if let Some(endpoint) = here {
            endpoint.deliver(datagram);
        }
    }
}

/// A process that does not serve yet. It is ended when this is dropped.
struct Starting(Option<Child>);

impl Starting {
    /// Starts `program` with the end `other` of the channel.
    fn start(program: Command, other: OwnedFd) -> Result<Self, UpgradeError> {
        let name = program.get_program().to_string_lossy().into_owned();
        let mut program = tokio::process::Command::from(program);
        program.env(VARIABLE, std::process::id().to_string());
        // What they describe is of this process.
        for name in ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "WATCHDOG_PID"] {
            program.env_remove(name);
        }
        let started = program.stdin(Stdio::from(other)).spawn();
        let child = started.map_err(|cause| UpgradeError::Start {
            program: name,
            cause,
        })?;
        // `program` holds the end of the child, which must be closed when the child ends.
        drop(program);
        Ok(Self(Some(child)))
    }

    /// Waits for `step`, but no longer than `limit`.
    async fn within<T>(
        &mut self,
        limit: Duration,
        step: impl Future<Output = io::Result<T>>,
    ) -> Result<T, UpgradeError> {
        let failed = match timeout(limit, step).await {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(error)) => error,
            Err(_) => return Err(UpgradeError::Late(limit)),
        };
        if let Some(child) = &mut self.0
            && let Ok(Ok(status)) = timeout(limits::UPGRADE_END, child.wait()).await
        {
            return Err(UpgradeError::Ended(status));
        }
        Err(failed.into())
    }

    /// Lets it run. Returns its ID.
    fn keep(mut self) -> u32 {
        let child = self.0.take();
        child.and_then(|child| child.id()).unwrap_or_default()
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // An error: it has ended already.
            let _ = child.start_kill();
        }
    }
}

/// Endpoints whose sockets another process is to read. They read them again when this is dropped.
struct Paused<'c>(Vec<&'c QuicEndpoint>);

impl<'c> Paused<'c> {
    /// Those at the addresses `taken`. Others go on with the connections that they have.
    async fn begin(contexts: &'c [Arc<Context>], taken: &[SocketAddr]) -> Self {
        let all = contexts.iter().flat_map(|context| &context.endpoints);
        let is_taken = |quic: &&QuicEndpoint| taken.iter().any(|at| quic.at(*at).is_some());
        let paused = Self(all.filter(is_taken).collect());
        for quic in &paused.0 {
            for endpoint in &quic.endpoints {
                endpoint.stop_receiving().await;
            }
            if let Some(sessions) = quic.open_sessions() {
                sessions.give_up();
            }
        }
        paused
    }

    /// Leaves it so.
    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        for quic in &self.0 {
            // The other process may have used them.
            take_over_sessions(quic);
            quic.endpoints
                .iter()
                .for_each(marline::Endpoint::start_receiving);
        }
    }
}
