//! Bulk connections that share a link with background flows.

mod shares;

use std::sync::Arc;

use marline::coordination::bundle::{Membership, MembershipId};
use marline::{Connection, Endpoint, Runtime};
use tokio::sync::mpsc;

use self::shares::Shares;
use super::ends::Ends;
use super::measures::{capacity_mbps, count, has_shared_capacity, watched};
use super::rates::{Counted, RateSeries, rates_mbps};
use super::{Probe, Testbed, failed, paths};
use crate::scenario::{Direction, Job, Outcome, RunError, Topology, Workload};
use crate::workload::background::{Received, fill, read};
use marline_sim::identity::Identity;

/// Runs the connections of `job` along with `flows`, and measures the throughput of each.
pub(super) async fn throughput(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    flows: &[Received],
) -> Result<Outcome, RunError> {
    let Workload::Measure {
        after,
        until,
        direction,
    } = job.settings.workload
    else {
        return Err(failed("the workload is not a measurement"));
    };
    let here = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let beginning = here.now();
    let sending = Some(probe.observers(job.watch));
    let [at_server, at_client] = match direction {
        Direction::Down => [sending, None],
        Direction::Up => [None, sending],
    };
    let server = Ends::server(job, testbed, at_server)?;
    let client = Ends::client(job, testbed, at_client, membership(job, &*here)?)?;
    let subject = std::iter::repeat_with(Received::default);
    let subject: Vec<_> = subject.take(job.settings.http.connections).collect();
    let answering = Arc::clone(&server.runtime);
    let accepting = server.endpoint.clone();
    let arrived = match direction {
        Direction::Down => Vec::new(),
        Direction::Up => subject.clone(),
    };
    server.runtime.spawn(Box::pin(async move {
        answer(&accepting, &answering, direction, arrived).await;
    }));

    let mut connections = Vec::new();
    for _ in 0..job.settings.http.connections {
        let connecting = client
            .endpoint
            .connect(testbed.server_address()?, Identity::NAME);
        let connection = connecting.map_err(failed)?.await.map_err(failed)?;
        paths::open_all(job, testbed, &*here, &connection).await?;
        connections.push(connection);
    }
    let (ended, mut ends) = mpsc::unbounded_channel();
    for (connection, received) in connections.iter().zip(&subject) {
        let (connection, received) = (connection.clone(), received.clone());
        let ended = ended.clone();
        here.spawn(Box::pin(async move {
            let end = match direction {
                Direction::Down => download(&connection, &received).await,
                Direction::Up => fill(&connection).await.map_err(failed),
            };
            // Fails if the run is over.
            let _ = ended.send(end);
        }));
    }

    let start = here.now();
    let subject = (0..).zip(subject);
    let subject = subject.map(|(number, received)| counted(number.to_string(), received));
    let beside = (1..).zip(flows.to_vec());
    let beside = beside.map(|(number, received)| counted(format!("flow {number}"), received));
    let mut series = RateSeries::new(start, subject.chain(beside).collect());
    series.sample_until(&*here, beginning + after).await;
    probe.reset();
    probe.collect_rtts();
    let (from, before) = (here.now(), series.bytes());
    series.sample_until(&*here, beginning + until).await;
    let seconds = here.now().saturating_since(from).as_secs_f64();
    if let Ok(end) = ends.try_recv() {
        end?;
        return Err(failed("a connection had nothing to send before the end"));
    }
    if seconds <= 0.0 {
        return Err(failed("connecting took longer than the measurement"));
    }

    let mut rates = rates_mbps(&before, &series.bytes(), seconds);
    let flows = rates.split_off(connections.len());
    let shares = Shares {
        connections: rates,
        flows,
        // Known of the links to the client.
        capacity: capacity_mbps(testbed).filter(|_| direction == Direction::Down),
        is_shared: has_shared_capacity(&job.settings),
    };
    let mut outcome = Outcome {
        metrics: shares.metrics(),
        ..Outcome::default()
    };
    count(&probe.seen(), &mut outcome);
    if job.watch {
        let mut watched = watched(probe, start);
        series.add_to(&mut watched.series);
        outcome.series = Some(watched);
    }
    for connection in connections {
        connection.close(0, b"");
    }
    Ok(outcome)
}

fn counted(name: String, received: Received) -> Counted {
    Counted::new(name, move || received.bytes())
}

/// The bundle of the connections of `job`, if they have one.
fn membership(job: &Job, runtime: &dyn Runtime) -> Result<Option<Membership>, RunError> {
    let http = &job.settings.http;
    if !http.bundle {
        return Ok(None);
    }
    let seed = runtime.seed().map_err(failed)?;
    let (id, _) = seed.split_first_chunk().ok_or_else(|| failed("no seed"))?;
    Ok(Some(Membership {
        id: MembershipId(*id),
        connections: http.connections as u64,
    }))
}

/// The server's part: sends without end on each connection that requests it, or counts in `received`, in the order of the
/// connections.
async fn answer(
    endpoint: &Endpoint,
    runtime: &Arc<dyn Runtime>,
    direction: Direction,
    received: Vec<Received>,
) {
    let mut received = received.into_iter();
    while let Some(connecting) = endpoint.accept().await {
        let received = received.next().unwrap_or_default();
        runtime.spawn(Box::pin(async move {
            // The client reports errors.
            let Ok(connection) = connecting.await else {
                return;
            };
            match direction {
                Direction::Up => read(&connection, &received).await.ok(),
                Direction::Down if connection.accept_uni().await.is_ok() => {
                    fill(&connection).await.ok()
                }
                Direction::Down => None,
            };
        }));
    }
}

/// The client's part: requests data, and counts what it receives.
async fn download(connection: &Connection, received: &Received) -> Result<(), RunError> {
    let mut request = connection.open_uni().await.map_err(failed)?;
    request.finish().map_err(failed)?;
    read(connection, received).await.map_err(failed)
}
