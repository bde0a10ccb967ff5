//! The tasks of a client, for stacks with an async API.

use std::future::Future;

use anyhow::{Context as _, ensure};
use bytes::Bytes;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;

use crate::{CHUNK, ClientArgs, Meter, PAUSE, Report, Task, control};

/// A client endpoint of a stack. Clones are the same endpoint.
pub trait Stack: Clone + Send + Sync + 'static {
    /// A connection. Clones are the same connection.
    type Connection: Clone + Send + Sync + 'static;

    /// Opens a connection; done once the handshake is complete.
    fn connect(&self) -> impl Future<Output = anyhow::Result<Self::Connection>> + Send;

    /// Requests `bytes` on a new stream and reads to the end. Returns the number of bytes received.
    fn download(
        connection: &Self::Connection,
        bytes: u64,
    ) -> impl Future<Output = anyhow::Result<u64>> + Send;

    /// Closes a connection.
    fn close(connection: &Self::Connection);
}

/// Runs the task in `args` and prints its report. `new` makes a client endpoint.
///
/// # Errors
/// If a connection or a download fails.
pub async fn run<S: Stack>(
    new: impl Fn() -> anyhow::Result<S>,
    args: &ClientArgs,
) -> anyhow::Result<()> {
    match args.task {
        Task::Bulk => bulk(&new()?, args.bytes).await?.print(),
        Task::Requests => requests(&new()?, args).await?.print(),
        Task::Handshakes => handshakes(&new()?, args.seconds).await?.print(),
        Task::Idle => idle(&new()?, args.connections).await?,
        Task::Fetch => fetch(new, args).await?.print(),
    }
    Ok(())
}

/// The data that servers send repeatedly.
#[must_use]
pub fn chunk() -> Bytes {
    vec![0x5a; CHUNK].into()
}

/// The next part of a response of which `left` bytes are to be sent.
#[must_use]
pub fn part(chunk: &Bytes, left: u64) -> Bytes {
    let length = usize::try_from(left).map_or(CHUNK, |left| left.min(CHUNK));
    chunk.slice(..length)
}

async fn bulk<S: Stack>(stack: &S, bytes: u64) -> anyhow::Result<Report> {
    let connection = stack.connect().await?;
    let meter = Meter::start();
    let received = S::download(&connection, bytes).await?;
    let report = meter.report(1, received);
    ensure!(received == bytes, "{received} bytes instead of {bytes}");
    S::close(&connection);
    Ok(report)
}

async fn requests<S: Stack>(stack: &S, args: &ClientArgs) -> anyhow::Result<Report> {
    let connection = stack.connect().await?;
    let (bytes, seconds) = (args.bytes, args.seconds);
    let meter = Meter::start();
    let mut tasks = JoinSet::new();
    for _ in 0..args.concurrency {
        let connection = connection.clone();
        tasks.spawn(async move {
            let clock = Meter::start();
            let mut count = 0_u64;
            while clock.seconds() < seconds {
                let received = S::download(&connection, bytes).await?;
                ensure!(received == bytes, "{received} bytes instead of {bytes}");
                count += 1;
            }
            Ok(count)
        });
    }
    let mut count = 0;
    while let Some(done) = tasks.join_next().await {
        count += done.context("a task ended early")??;
    }
    let report = meter.report(count, count * bytes);
    S::close(&connection);
    Ok(report)
}

async fn fetch<S: Stack>(
    new: impl Fn() -> anyhow::Result<S>,
    args: &ClientArgs,
) -> anyhow::Result<Report> {
    let bytes = args.bytes;
    let meter = Meter::start();
    let mut each = Vec::new();
    for _ in 0..args.count {
        // A new client knows nothing from the connection before.
        let stack = new()?;
        let clock = Meter::start();
        let connection = stack.connect().await?;
        let received = S::download(&connection, bytes).await?;
        each.push(clock.seconds());
        ensure!(received == bytes, "{received} bytes instead of {bytes}");
        S::close(&connection);
        sleep(PAUSE).await;
    }
    Ok(Report {
        each,
        ..meter.report(args.count, args.count * bytes)
    })
}

async fn handshakes(stack: &impl Stack, seconds: f64) -> anyhow::Result<Report> {
    let meter = Meter::start();
    let mut count = 0;
    while meter.seconds() < seconds {
        close(stack, &stack.connect().await?);
        count += 1;
    }
    Ok(meter.report(count, 0))
}

fn close<S: Stack>(_stack: &S, connection: &S::Connection) {
    S::close(connection);
}

async fn idle(stack: &impl Stack, count: usize) -> anyhow::Result<()> {
    let meter = Meter::start();
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        held.push(stack.connect().await?);
    }
    meter.report(count as u64, 0).print();
    spawn_blocking(control::wait_for_end).await??;
    Ok(())
}
