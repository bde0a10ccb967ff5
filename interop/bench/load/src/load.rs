//! Requests without a pause, by so many clients at once, until the time is over.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use tokio::task::{JoinSet, LocalSet};

use crate::args::{Args, Reuse};
use crate::connection::{Client, Connection};
use crate::report::Counts;
use crate::tls::Trusting;

/// Failures of a client after which it gives up.
const PATIENCE: u64 = 100;

/// Makes requests with the connections that fall to the thread `index`.
pub(crate) fn run(
    args: &Args,
    index: usize,
    verifier: &Arc<Trusting>,
    until: Instant,
) -> anyhow::Result<Counts> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let connections =
        args.connections / args.threads + usize::from(index < args.connections % args.threads);
    LocalSet::new().block_on(&runtime, async {
        let mut clients = JoinSet::new();
        for _ in 0..connections {
            let client = Rc::new(Client::new(args, Arc::clone(verifier))?);
            let (reuse, streams) = (args.reuse, args.streams);
            clients.spawn_local(async move {
                match reuse {
                    Reuse::Keep => keep(&client, streams, until).await,
                    Reuse::Full | Reuse::Resume => renew(&client, until).await,
                }
            });
        }
        let mut all = Counts::default();
        while let Some(counts) = clients.join_next().await {
            all.add(counts?);
        }
        Ok(all)
    })
}

/// Requests over one connection, which is opened again if it fails.
async fn keep(client: &Rc<Client>, streams: usize, until: Instant) -> Counts {
    let mut counts = Counts::default();
    while Instant::now() < until && counts.errors < PATIENCE {
        match client.connect().await {
            Ok(connection) => counts.add(share(client, connection, streams, until).await),
            Err(error) => counts.fail(&error),
        }
    }
    counts
}

async fn share(
    client: &Rc<Client>,
    connection: Connection,
    streams: usize,
    until: Instant,
) -> Counts {
    let mut tasks = JoinSet::new();
    for _ in 1..streams {
        if let Some(handle) = connection.share() {
            let client = Rc::clone(client);
            tasks.spawn_local(async move { repeat(&client, handle, until).await.0 });
        }
    }
    let (mut counts, connection) = repeat(client, connection, until).await;
    while let Some(others) = tasks.join_next().await {
        match others {
            Ok(others) => counts.add(others),
            Err(error) => counts.fail(&error.into()),
        }
    }
    connection.close();
    counts
}

async fn repeat(
    client: &Client,
    mut connection: Connection,
    until: Instant,
) -> (Counts, Connection) {
    let mut counts = Counts::default();
    while Instant::now() < until {
        let start = Instant::now();
        match client.request(&mut connection).await {
            Ok(()) => counts.succeed(start.elapsed()),
            Err(error) => {
                counts.fail(&error);
                break;
            }
        }
    }
    (counts, connection)
}

/// A connection for each request, whose time includes the handshake.
async fn renew(client: &Client, until: Instant) -> Counts {
    let mut counts = Counts::default();
    while Instant::now() < until && counts.errors < PATIENCE {
        let start = Instant::now();
        match once(client).await {
            Ok(()) => counts.succeed(start.elapsed()),
            Err(error) => counts.fail(&error),
        }
    }
    counts
}

async fn once(client: &Client) -> anyhow::Result<()> {
    let mut connection = client.connect().await?;
    let done = client.request(&mut connection).await;
    connection.close();
    done
}

/// The counts of all threads, and the seconds that they took.
pub(crate) fn run_all(args: &Args, verifier: &Arc<Trusting>) -> anyhow::Result<(Counts, f64)> {
    let start = Instant::now();
    let until = start + Duration::from_secs_f64(args.seconds);
    let mut all = Counts::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads)
            .map(|index| scope.spawn(move || run(args, index, verifier, until)))
            .collect();
        for thread in threads {
            match thread.join() {
                Ok(counts) => all.add(counts?),
                Err(_) => bail!("a thread has panicked"),
            }
        }
        Ok(())
    })?;
    Ok((all, start.elapsed().as_secs_f64()))
}
