//! The backend that executes runs in virtual time.

use std::fs::File;
use std::io::BufWriter;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marline::Runtime;
use marline_link::Seed;
use marline_sim::fabric::{Fabric, Switch};
use marline_sim::{CaptureHandle, Host, Sim, SimConfig, Stall};

use crate::execution::{self, QueueGauge, Routes, Testbed};
use crate::scenario::{Backend, Job, Outcome, RunError, Watched};

/// The interval at which queues are sampled.
const SAMPLING_INTERVAL: Duration = Duration::from_millis(2);

/// The simulator: equal jobs have equal outcomes on every machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Backend for Simulator {
    fn run(&self, job: &Job) -> Result<Outcome, RunError> {
        let seed = Seed::new(job.seed);
        let settings = &job.settings;
        if !settings.stress.is_empty() {
            let why = "hosts of the simulator have no processor to stress: use the emulator";
            return Err(RunError::Unsupported(why.to_owned()));
        }
        let switch = Switch::default();
        let mut fabric =
            execution::changing_network(&settings.topology, &settings.changes, &switch, seed)?;
        let routes = Routes::count(&mut fabric, &settings.topology);
        let config = SimConfig {
            flow_hash: job.settings.topology.ecmp.into(),
            ..SimConfig::new(seed.of("hosts"))
        };
        let mut sim = Sim::new(fabric, config);
        let capture = begin_capture(&sim, job)?;
        let hosts = sim.hosts();
        let testbed_host = hosts
            .iter()
            .map(|host| (host.name().to_owned(), testbed_host(host)));
        let gauge = hosts
            .first()
            .cloned()
            .map(|host| QueueGauge::new(move || host.fabric(Fabric::total_queued_bytes)));
        let testbed = Testbed {
            queues: gauge,
            routes,
            ..Testbed::new(testbed_host.collect(), settings, switch)?
        };
        let queues = Queues::default();
        if let (true, Some(host)) = (job.watch, hosts.first()) {
            host.run(queues.clone().follow(host.clone()));
        }
        let limit = job.settings.time_limit;
        let outcome = sim
            .run(execution::execute(job, &testbed), limit)
            .map_err(|stalled| match stalled.stall {
                Stall::TimeLimit => RunError::TimeLimit {
                    seconds: limit.as_secs_f64(),
                },
                _ => RunError::Stalled(stalled.to_string()),
            });
        if let Some(capture) = capture {
            capture.finish().map_err(cannot_capture)?;
        }
        let mut outcome = outcome??;
        let statistics = sim.statistics();
        outcome.virtual_s = statistics.virtual_time.as_secs_f64();
        outcome.packets = statistics.packets_sent;
        if let Some(watched) = &mut outcome.series {
            queues.add_to(watched);
            watched.thin();
        }
        Ok(outcome)
    }
}

fn testbed_host(host: &Host) -> execution::Host {
    execution::Host {
        runtime: Arc::new(host.clone()),
        addresses: host.addresses().iter().map(|&ip| ip.into()).collect(),
        kernel: None,
    }
}

/// Starts the capture that the job names.
fn begin_capture(sim: &Sim, job: &Job) -> Result<Option<CaptureHandle<BufWriter<File>>>, RunError> {
    let Some(path) = &job.pcap else {
        return Ok(None);
    };
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(cannot_capture)?;
    }
    let file = File::create(path).map_err(cannot_capture)?;
    let capture = sim.capture(BufWriter::new(file));
    capture.map(Some).map_err(cannot_capture)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn cannot_capture(error: std::io::Error) -> RunError {
    RunError::Failed(format!("cannot write the capture: {error}"))
}

/// Bytes in the queue of each end of each link: series by name.
#[derive(Clone, Debug, Default)]
struct Queues(Arc<Mutex<Watched>>);

impl Queues {
    /// Samples the queues for as long as the simulation runs.
    async fn follow(self, host: Host) {
        loop {
            let now = host.now().as_nanos() as f64 * 1e-9;
            host.fabric(|fabric| {
                let mut watched = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                for medium in fabric.media() {
                    for &node in fabric.members(medium) {
                        let Some(bytes) = fabric.queued_bytes(medium, node) else {
                            continue;
                        };
                        let (link, end) = (fabric.medium_name(medium), fabric.name(node));
                        let name = format!("queue_bytes {link} from {end}");
                        let series = watched.series.entry(name).or_default();
                        let bytes = bytes as f64;
                        if series.last().is_none_or(|&(_, last)| last != bytes) {
                            series.push((now, bytes));
                        }
                    }
                }
            });
            host.sleep(SAMPLING_INTERVAL).await;
        }
    }

    /// Adds the queues that were ever used.
    fn add_to(&self, watched: &mut Watched) {
        let queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, series) in &queues.series {
            if series.iter().any(|&(_, bytes)| bytes > 0.0) {
                let start = watched.start_s;
                let points = series.iter().map(|&(at, bytes)| (at - start, bytes));
                watched.series.insert(name.clone(), points.collect());
            }
        }
    }
}
