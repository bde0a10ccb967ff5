//! Repeated visits, each over a new connection.

mod flow_monitor;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::{Bytes, Connecting, Connection, Endpoint, Instant, MakeObserver, Runtime};

use self::flow_monitor::FlowMonitor;
use super::background::Flows;
use super::ends::{Ends, drain, write};
use super::measures::Measured;
use super::{Probe, Testbed, failed, sleep};
use crate::scenario::{Job, Outcome, RunError, Topology, Visit, When, Workload};
use marline_sim::identity::Identity;

/// The time before the last visit over which the flows' baseline rate is measured.
const BASELINE: Duration = Duration::from_secs(5);

/// Makes the visits of `job`, and measures the last.
pub(super) async fn visit(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    flows: &Flows,
) -> Result<Outcome, RunError> {
    let Workload::Visits { visits, afterwards } = &job.settings.workload else {
        return Err(failed("the workload is not visits"));
    };
    let Some((last, before)) = visits.split_last() else {
        return Err(failed("there are no visits"));
    };
    let here = Arc::clone(&testbed.host(Topology::CLIENT)?.runtime);
    let counted = CountedConnections::default();
    let server = Ends::server(job, testbed, Some(counted.observers(probe, job.watch)))?;
    let client = Ends::client(job, testbed, None, None)?;
    let server_task = VisitServer {
        runtime: Arc::clone(&server.runtime),
        probe: probe.clone(),
        start: StartWindow::default(),
        answers_early: visits.iter().any(|visit| visit.early),
    };
    let start = server_task.start.clone();
    let accepting = server.endpoint.clone();
    server
        .runtime
        .spawn(Box::pin(async move { server_task.all(&accepting).await }));
    let monitor = FlowMonitor::watch(&here, flows);

    let mut visitor = Visitor {
        client: &client,
        address: testbed.server_address()?,
        open: Vec::new(),
    };
    let mut number = 0;
    let mut next = |visit: &Visit| {
        number += 1;
        for (change, to) in job.settings.changes.iter().zip(1..) {
            if change.when == When::BeforeVisit(number) {
                testbed.switch.advance(to);
            }
        }
        visit.clone()
    };
    for visit in before {
        let visit = next(visit);
        for _ in 0..visit.times {
            sleep(&*here, visit.pause).await;
            visitor.fetch(&visit).await?;
        }
    }
    let last = next(last);
    for _ in 1..last.times {
        sleep(&*here, last.pause).await;
        visitor.fetch(&last).await?;
    }
    sleep(&*here, last.pause).await;

    counted.now();
    probe.reset();
    let began = here.now();
    let fetched = visitor.fetch(&last).await?;
    let measured = Measured {
        start: began,
        completion_s: fetched.ended.saturating_since(began).as_secs_f64(),
        bytes: last.size,
        handshakes: u32::from(!fetched.accepted_early),
    };
    let mut outcome = measured.outcome(probe, testbed.ideal.as_ref(), job.watch);
    add_metrics(&mut outcome, last.size, &fetched, probe);
    let window = start.window() as f64;
    let metrics = &mut outcome.metrics;
    metrics.insert("initial_window_bytes".to_owned(), window);
    if last.early {
        let accepted = f64::from(u8::from(fetched.accepted_early));
        metrics.insert("early_data_accepted".to_owned(), accepted);
    }
    if !flows.received.is_empty() {
        sleep(&*here, *afterwards).await;
        let course = monitor.stop(began - last.pause.min(BASELINE), began, fetched.ended);
        course.add_to(&mut outcome, job.watch);
    }
    Ok(outcome)
}

/// Metrics of visits, in addition to those of every transfer.
fn add_metrics(outcome: &mut Outcome, size: u64, fetched: &Fetched, probe: &Probe) {
    let latency = fetched.ended.saturating_since(fetched.requested);
    let latency = latency.as_secs_f64();
    let mut metric = |name: &str, value: f64| {
        outcome.metrics.insert(name.to_owned(), value);
    };
    metric("latency_s", latency);
    metric("goodput_mbps", size as f64 * 8e-6 / latency.max(1e-9));
    let seen = probe.seen();
    let first_flight = seen
        .first_flight
        .map_or(0.0, |flight| flight.lost as f64 / flight.sent.max(1) as f64);
    metric("first_flight_loss_ratio", first_flight);
    metric("careful_jumps", seen.careful.jumps as f64);
    metric("careful_retreats", seen.careful.retreats as f64);
    if let (Some(jumped), Some(ended)) = (seen.careful.jumped, seen.careful.ended) {
        metric("careful_s", ended.saturating_since(jumped).as_secs_f64());
    }
}

/// The times of a request.
struct Fetched {
    requested: Instant,
    ended: Instant,
    /// Whether the request was 0-RTT data that the server accepted.
    accepted_early: bool,
}

/// The client's part.
struct Visitor<'a> {
    client: &'a Ends,
    address: SocketAddr,
    /// Connections of earlier visits that stay open.
    open: Vec<Connection>,
}

impl Visitor<'_> {
    /// Connects, requests the bytes of `visit` and reads them. Closes the connection unless it stays open.
    async fn fetch(&mut self, visit: &Visit) -> Result<Fetched, RunError> {
        let clock = &self.client.runtime;
        let connecting = self.client.endpoint.connect(self.address, Identity::NAME);
        let connecting = connecting.map_err(failed)?;
        let begun = match visit.early {
            true => connecting.into_0rtt(),
            false => Err(connecting),
        };
        let connection = match begun {
            Ok(connection) => connection,
            Err(connecting) => connecting.await.map_err(failed)?,
        };
        let requested = clock.now();
        let mut request = connection.open_uni().await.map_err(failed)?;
        let wanted = Bytes::copy_from_slice(&visit.size.to_be_bytes());
        request.write_chunk(wanted).await.map_err(failed)?;
        request.finish().map_err(failed)?;
        let stream = connection.accept_uni().await.map_err(failed)?;
        drain(stream).await?;
        let ended = clock.now();
        let accepted_early = connection.early_data_accepted();
        match visit.open {
            true => self.open.push(connection),
            false => connection.close(0, b""),
        }
        Ok(Fetched {
            requested,
            ended,
            accepted_early,
        })
    }
}

/// The window with which the latest transfer began, in bytes.
#[derive(Clone, Debug, Default)]
struct StartWindow(Arc<Mutex<u64>>);

impl StartWindow {
    fn window(&self) -> u64 {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, bytes: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }
}

/// The server's part.
#[derive(Clone)]
struct VisitServer {
    runtime: Arc<dyn Runtime>,
    probe: Probe,
    start: StartWindow,
    /// Whether it answers requests in 0-RTT data before the handshake is complete.
    answers_early: bool,
}

impl VisitServer {
    async fn all(&self, endpoint: &Endpoint) {
        while let Some(connecting) = endpoint.accept().await {
            let server_task = self.clone();
            self.runtime.spawn(Box::pin(async move {
                // The client reports errors.
                if let Ok(connection) = server_task.accept(connecting).await {
                    let _ = server_task.one(&connection).await;
                    connection.closed().await;
                }
            }));
        }
    }

    async fn accept(&self, connecting: Connecting) -> Result<Connection, RunError> {
        match self.answers_early {
            true => connecting
                .into_0rtt()
                .map_err(|_| failed("the attempt is over")),
            false => connecting.await.map_err(failed),
        }
    }

    async fn one(&self, connection: &Connection) -> Result<(), RunError> {
        let mut request = connection.accept_uni().await.map_err(failed)?;
        let wanted = request.read_to_end(8).await.map_err(failed)?;
        let size = wanted[..].try_into().map(u64::from_be_bytes);
        let size = size.map_err(|_| failed("the request is not a size"))?;
        if let Some(path) = connection.stats().paths.first() {
            self.start.set(path.congestion_window);
        }
        if connection.is_replayable() {
            // The window learned from earlier connections is known when the handshake is complete.
            let (start, connection) = (self.start.clone(), connection.clone());
            self.runtime.spawn(Box::pin(async move {
                if connection.connected().await.is_ok() {
                    start.set(connection.initial_window());
                }
            }));
        }
        self.probe
            .begin_flight(self.runtime.now() + connection.rtt());
        let stream = connection.open_uni().await.map_err(failed)?;
        write(stream, size).await
    }
}

/// Whether new connections are recorded with time series.
#[derive(Clone, Debug, Default)]
struct CountedConnections(Arc<AtomicBool>);

impl CountedConnections {
    fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Observers that record time series of those connections only.
    fn observers(&self, probe: &Probe, watch: bool) -> MakeObserver {
        let (counted, quiet, seeing) =
            (self.clone(), probe.observers(false), probe.observers(watch));
        Arc::new(move |info| match counted.0.load(Ordering::Relaxed) {
            true => seeing(info),
            false => quiet(info),
        })
    }
}
