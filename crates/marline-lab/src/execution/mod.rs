//! Executes the workload of a scenario on any runtime.
//!
//! The client's host sends requests, the server's answers them. Both are production code; only the runtime
//! differs between the backends.

mod background;
#[cfg(target_os = "linux")]
mod browser;
mod call;
mod devices;
mod ends;
mod files;
mod http;
mod kernel;
mod measure;
mod measures;
mod memory;
mod network;
mod objects;
#[cfg(target_os = "linux")]
mod other_server;
mod page;
mod paths;
mod probe;
#[cfg(target_os = "linux")]
mod program;
mod radio;
mod rates;
mod routes;
mod streams;
mod trace;
mod transfer;
mod video;
mod visits;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use marline::{Instant, Runtime, TransportConfig};
use marline_sim::fabric::Switch;

pub(crate) use background::begins;
pub(crate) use files::files_below;
pub use kernel::{AcceptedConnections, Kernel, TcpState};
pub use measures::{Ideal, PathCapacity, ideal, ideal_of};
pub use network::{changing_network, network};
pub use probe::{
    EngineAction, FirstFlight, Fluctuation, PathSeries, Probe, Seen, SeenBundle, SeenCareful,
};
pub use routes::Routes;
pub use trace::QueueGauge;

use crate::scenario::{
    EndpointSettings, Job, Outcome, RunError, Settings, Topology, When, Workload,
};
use crate::workload::background::TcpCount;

/// The port that servers listen on.
const PORT: u16 = 4433;

/// The time for which connections that were opened in advance are idle before the measurement
/// starts.
const SETTLE: Duration = Duration::from_secs(1);

/// A host: its programs use its clock and its sockets.
#[derive(Clone, Debug)]
pub struct Host {
    /// Clock, timers, tasks and sockets.
    pub runtime: Arc<dyn Runtime>,
    /// Its addresses, one for each interface.
    pub addresses: Vec<IpAddr>,
    /// The kernel's TCP, if the backend has one.
    pub kernel: Option<Arc<dyn Kernel>>,
}

/// The addresses of client and server that a path joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathEnds {
    /// The client's.
    pub client: IpAddr,
    /// The server's.
    pub server: IpAddr,
}

/// The hosts, paths and links of a run.
#[derive(Clone, Debug)]
pub struct Testbed {
    /// The hosts by name.
    pub hosts: BTreeMap<String, Host>,
    /// All paths between client and server that differ by addresses, in the order of the scenario.
    pub paths: Vec<PathEnds>,
    /// The index in `paths` of the one on which connections begin.
    pub first: usize,
    /// When the run began, on the client's clock.
    pub started: Instant,
    /// The ideal performance of the links, if it is known.
    pub ideal: Option<Ideal>,
    /// Makes the links change.
    pub switch: Switch,
    /// Counts of the flows that [iperf3](crate::scenario::TcpRunner::Iperf3) runs, observed on the links, in
    /// the order of the settings.
    pub tcp: Vec<TcpCount>,
    /// The queues of the network, if they can be read.
    pub queues: Option<QueueGauge>,
    /// The links between routers that carry the server's connections, if there are such links.
    pub routes: Option<Routes>,
}

impl Testbed {
    /// The testbed of `settings` with these hosts, whose addresses are in the order of their links.
    ///
    /// # Errors
    /// No path leads from the client to the server.
    pub fn new(
        hosts: BTreeMap<String, Host>,
        settings: &Settings,
        switch: Switch,
    ) -> Result<Self, RunError> {
        let addresses = |name| find(&hosts, name).map(|host| &host.addresses);
        let client = addresses(Topology::CLIENT)?;
        let server = addresses(Topology::SERVER)?;
        let pairs = (0..client.len().max(server.len())).filter_map(|place| {
            Some(PathEnds {
                client: *client.get(place).or(client.last())?,
                server: *server.get(place).or(server.last())?,
            })
        });
        let mut paths: Vec<_> = pairs.collect();
        // Only the links of `paths` are known to be parallel.
        let has_parallel_paths = settings.path.is_some() || settings.is_multipath();
        if !has_parallel_paths {
            paths.truncate(1);
        }
        let first = settings.path.map_or(0, |path| path.saturating_sub(1));
        let testbed = Self {
            paths,
            first,
            started: find(&hosts, Topology::CLIENT)?.runtime.now(),
            ideal: ideal_of(settings),
            switch,
            tcp: Vec::new(),
            queues: None,
            routes: None,
            hosts,
        };
        testbed.first_path()?;
        Ok(testbed)
    }

    fn host(&self, name: &str) -> Result<&Host, RunError> {
        find(&self.hosts, name)
    }

    /// The path on which connections begin.
    fn first_path(&self) -> Result<PathEnds, RunError> {
        let path = self.paths.get(self.first).copied();
        path.ok_or_else(|| failed("client and server have no such path between them"))
    }

    /// The server's address on the first path.
    fn server_address(&self) -> Result<SocketAddr, RunError> {
        Ok(SocketAddr::new(self.first_path()?.server, PORT))
    }
}

fn find<'a>(hosts: &'a BTreeMap<String, Host>, name: &str) -> Result<&'a Host, RunError> {
    let host = hosts.get(name);
    host.ok_or_else(|| RunError::Unsupported(format!("there is no host {name:?}")))
}

/// Executes the workload of `job`, and measures it.
///
/// [`Outcome::virtual_s`] and [`Outcome::packets`] are set by the backend.
///
/// # Errors
/// The workload failed, or the backend does not support it.
pub async fn execute(job: &Job, testbed: &Testbed) -> Result<Outcome, RunError> {
    if let Some(directory) = &job.qlog {
        std::fs::create_dir_all(directory).map_err(|error| {
            failed(format_args!("cannot make {}: {error}", directory.display()))
        })?;
    }
    let flows = background::start(job, testbed)?;
    schedule_changes(job, testbed)?;
    let probe = Probe::default();
    let mut outcome = workload(job, testbed, &probe, &flows).await?;
    let now = testbed.host(Topology::CLIENT)?.runtime.now();
    let elapsed = now.saturating_since(testbed.started);
    outcome.metrics.extend(flows.metrics(elapsed));
    Ok(outcome)
}

async fn workload(
    job: &Job,
    testbed: &Testbed,
    probe: &Probe,
    flows: &background::Flows,
) -> Result<Outcome, RunError> {
    match &job.settings.workload {
        Workload::Objects { .. } => objects::fetch(job, testbed, probe).await,
        Workload::Files { .. } => files::fetch(job, testbed, probe).await,
        Workload::Transfer { .. } => transfer::transfer(job, testbed, probe).await,
        Workload::Streams { .. } => streams::fetch(job, testbed, probe).await,
        Workload::Measure { .. } => measure::throughput(job, testbed, probe, &flows.received).await,
        Workload::Visits { .. } => visits::visit(job, testbed, probe, flows).await,
        Workload::Page { .. } => page::load(job, testbed, probe).await,
        Workload::Devices { .. } => devices::load(job, testbed, probe).await,
        Workload::Video { .. } => video::play(job, testbed, probe).await,
        Workload::Call { .. } => call::call(job, testbed, probe).await,
    }
}

/// Schedules the changes of links that have a time.
fn schedule_changes(job: &Job, testbed: &Testbed) -> Result<(), RunError> {
    let runtime = &testbed.host(Topology::CLIENT)?.runtime;
    for (number, change) in (1..).zip(&job.settings.changes) {
        if let When::At(at) = change.when {
            let (clock, switch) = (Arc::clone(runtime), testbed.switch.clone());
            runtime.spawn(Box::pin(async move {
                sleep(&*clock, at).await;
                switch.advance(number);
            }));
        }
    }
    Ok(())
}

/// The transport configuration of `settings`, but without grease, whose sizes are random.
fn transport(settings: &EndpointSettings) -> Arc<TransportConfig> {
    Arc::new(TransportConfig {
        grease: false,
        ..settings.transport()
    })
}

/// Waits on the clock of `runtime`.
async fn sleep(runtime: &dyn Runtime, duration: Duration) {
    let mut timer = runtime.timer();
    timer.set(runtime.now() + duration);
    std::future::poll_fn(|cx| timer.poll(cx)).await;
}

fn failed(why: impl std::fmt::Display) -> RunError {
    RunError::Failed(why.to_string())
}
