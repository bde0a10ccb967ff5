//! How connections without end share a link with others.

mod shares;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use marline::coordination::bundle::{Membership, MembershipId};
use marline::{Connection, Endpoint, Instant, Runtime};
use tokio::sync::mpsc;

use self::shares::Shares;
use super::ends::Ends;
use super::measures::{count, watched};
use super::{Probe, Stage, failed, paths, sleep};
use crate::scenario::{Job, Outcome, RunError, Topology, Workload};
use crate::workload::background::{Received, fill, read};
use marline_sim::identity::Identity;

/// How often everybody's bytes are looked at, for pictures.
const GLANCE: Duration = Duration::from_millis(500);

/// Lets the connections of `job` and `flows` go on together, and measures what each gets.
pub(super) async fn throughput(
    job: &Job,
    stage: &Stage,
    probe: &Probe,
    flows: &[Received],
) -> Result<Outcome, RunError> {
    let Workload::Measure { after, until } = job.settings.workload else {
        return Err(failed("there is nothing to measure"));
    };
    let here = Arc::clone(&stage.host(Topology::CLIENT)?.runtime);
    let beginning = here.now();
    let server = Ends::server(job, stage, Some(probe.observers(job.watch)))?;
    let client = Ends::client(job, stage, None, membership(job, &*here)?)?;
    let answering = Arc::clone(&server.runtime);
    let accepting = server.endpoint.clone();
    server.runtime.spawn(Box::pin(
        async move { answer(&accepting, &answering).await },
    ));

    let mut connections = Vec::new();
    for _ in 0..job.settings.http.connections {
        let connecting = client
            .endpoint
            .connect(stage.server_address()?, Identity::NAME);
        let connection = connecting.map_err(failed)?.await.map_err(failed)?;
        paths::open_all(job, stage, &*here, &connection).await?;
        connections.push(connection);
    }
    let (ended, mut ends) = mpsc::unbounded_channel();
    let mut subject = Vec::new();
    for connection in &connections {
        let (connection, received) = (connection.clone(), Received::default());
        subject.push(received.clone());
        let ended = ended.clone();
        here.spawn(Box::pin(async move {
            let end = download(&connection, &received).await;
            // Nobody listens any more when the run is over.
            let _ = ended.send(end);
        }));
    }

    let start = here.now();
    let mut course = Course::new(start, subject, flows.to_vec());
    course.follow(&*here, beginning + after).await;
    probe.reset();
    let (from, before) = (here.now(), course.bytes());
    course.follow(&*here, beginning + until).await;
    let seconds = here.now().saturating_since(from).as_secs_f64();
    if let Ok(end) = ends.try_recv() {
        end?;
        return Err(failed("a connection had nothing to send before the end"));
    }
    if seconds <= 0.0 {
        return Err(failed("connecting took longer than was to be measured"));
    }

    let rate = |(before, after): (&u64, &u64)| (after - before) as f64 * 8e-6 / seconds;
    let now = course.bytes();
    let mut rates: Vec<_> = before.iter().zip(&now).map(rate).collect();
    let flows = rates.split_off(connections.len());
    let shares = Shares {
        connections: rates,
        flows,
        capacity: stage.ideal.as_ref().map(|ideal| ideal.goodput_bps() * 1e-6),
    };
    let mut outcome = Outcome {
        metrics: shares.metrics(),
        ..Outcome::default()
    };
    count(&probe.seen(), &mut outcome);
    if job.watch {
        let mut watched = watched(probe, start);
        course.add_to(&mut watched.series);
        outcome.series = Some(watched);
    }
    for connection in connections {
        connection.close(0, b"");
    }
    Ok(outcome)
}

/// The bundle that the connections of `job` belong to, if they say so.
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

/// The server's part: whoever asks is sent to without end.
async fn answer(endpoint: &Endpoint, runtime: &Arc<dyn Runtime>) {
    while let Some(connecting) = endpoint.accept().await {
        runtime.spawn(Box::pin(async move {
            // What goes wrong here is noticed by the client.
            if let Ok(connection) = connecting.await
                && connection.accept_uni().await.is_ok()
            {
                fill(&connection).await.ok();
            }
        }));
    }
}

/// The client's part: asks, and counts what comes.
async fn download(connection: &Connection, received: &Received) -> Result<(), RunError> {
    let mut request = connection.open_uni().await.map_err(failed)?;
    request.finish().map_err(failed)?;
    read(connection, received).await.map_err(failed)
}

/// What everybody got so far, and how fast it came.
struct Course {
    start: Instant,
    /// Connections and flows, with their names in pictures.
    all: Vec<(String, Received)>,
    /// Seconds from the start, and the rate of each in the time before, in Mbit/s.
    rates: Vec<(f64, Vec<f64>)>,
}

impl Course {
    fn new(start: Instant, connections: Vec<Received>, flows: Vec<Received>) -> Self {
        let connections = (0..).zip(connections);
        let connections = connections.map(|(number, received)| (number.to_string(), received));
        let flows = (1..).zip(flows);
        let flows = flows.map(|(number, received)| (format!("flow {number}"), received));
        Self {
            start,
            all: connections.chain(flows).collect(),
            rates: Vec::new(),
        }
    }

    fn bytes(&self) -> Vec<u64> {
        self.all
            .iter()
            .map(|(_, received)| received.bytes())
            .collect()
    }

    /// Waits until `end`.
    async fn follow(&mut self, runtime: &dyn Runtime, end: Instant) {
        loop {
            let (now, before) = (runtime.now(), self.bytes());
            let left = end.saturating_since(now);
            if left.is_zero() {
                return;
            }
            sleep(runtime, left.min(GLANCE)).await;
            let seconds = runtime.now().saturating_since(now).as_secs_f64();
            let rate = |(before, after): (&u64, &u64)| (after - before) as f64 * 8e-6 / seconds;
            let rates = before.iter().zip(&self.bytes()).map(rate).collect();
            let at = runtime.now().saturating_since(self.start).as_secs_f64();
            self.rates.push((at, rates));
        }
    }

    /// A series for each.
    fn add_to(&self, series: &mut BTreeMap<String, Vec<(f64, f64)>>) {
        for (place, (name, _)) in self.all.iter().enumerate() {
            let points = self.rates.iter().map(|(at, rates)| (*at, rates[place]));
            series.insert(format!("goodput_mbps {name}"), points.collect());
        }
    }
}
