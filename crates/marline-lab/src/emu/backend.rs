//! The backend that executes runs in real time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use marline_link::Seed;
use marline_report::units;
use marline_sim::fabric::{Fabric, Switch};
use tokio::time::timeout;

use super::iperf::Iperf;
use super::line::capture;
use super::stress::Stressed;
use super::{EmuError, Emulation, IpPacket, Report, Spooler, in_virtual_time};
use crate::execution::{self, Routes, Testbed};
use crate::scenario::{Backend, Job, Outcome, RunError};

/// Held during a run: parallel runs on one machine would delay each other's packets.
static RUN_LOCK: Mutex<()> = Mutex::new(());

/// The emulator: executes jobs between network namespaces of this machine. Runs are serialized, regardless of how many
/// threads call it.
#[derive(Clone, Copy, Debug)]
pub struct Emulator {
    /// A run is marked as invalid if more than 1 % of its packets are delivered later than this.
    pub bound: Duration,
}

impl Default for Emulator {
    fn default() -> Self {
        Self {
            bound: Duration::from_millis(1),
        }
    }
}

impl Backend for Emulator {
    fn run(&self, job: &Job) -> Result<Outcome, RunError> {
        let _alone = RUN_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let topology = &job.settings.topology;
        let switch = Switch::default();
        let (changes, seed) = (&job.settings.changes, Seed::new(job.seed));
        let mut fabric = execution::changing_network(topology, changes, &switch, seed)?;
        let file = job.pcap.as_deref();
        let file = file.map(|path| begin_capture(&mut fabric, path));
        let file = file.transpose()?;
        let stressed = job.settings.stress.iter().map(Stressed::start);
        let stressed = stressed.collect::<Result<Vec<_>, _>>()?;
        let routes = Routes::count(&mut fabric, topology);
        let iperf = Iperf::plan(job, &mut fabric, &stressed)?;
        // A machine in virtual time has one processor. More threads would only wake each other, and read the clock to
        // measure their load.
        let mut runtime = match in_virtual_time() {
            true => tokio::runtime::Builder::new_current_thread(),
            false => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = runtime
            .enable_all()
            .build()
            .map_err(|error| RunError::Failed(error.to_string()))?;
        let hosts: Vec<_> = fabric
            .nodes()
            .filter(|&node| fabric.is_host(node))
            .collect();
        let names: Vec<_> = hosts
            .iter()
            .map(|&host| fabric.name(host).to_owned())
            .collect();
        let emulation = Emulation::start(fabric, topology.ecmp.into())?;
        let outcome = runtime.block_on(async {
            let mut testbed_host = BTreeMap::new();
            for (name, &host) in names.into_iter().zip(&hosts) {
                let addresses = emulation.addresses(host).iter();
                let stressed = stressed.iter().find(|one| one.host() == name);
                let _context = stressed.map(|one| one.runtime().enter());
                let one = execution::Host {
                    runtime: emulation
                        .runtime(host)
                        .map_err(EmuError::system("creating a runtime"))?,
                    addresses: addresses.map(|&address| address.into()).collect(),
                    kernel: Some(
                        emulation
                            .kernel(host, stressed.map(Stressed::processor))
                            .map_err(EmuError::system("opening a namespace"))?,
                    ),
                };
                testbed_host.insert(name, one);
            }
            let testbed = Testbed {
                tcp: iperf.counts(),
                routes,
                ..Testbed::new(testbed_host, &job.settings, switch)?
            };
            let limit = job.settings.time_limit;
            let mut flows = iperf.start(&emulation).await?;
            let outcome = async {
                tokio::select! {
                    outcome = execution::execute(job, &testbed) => outcome,
                    why = flows.ended() => Err(RunError::Failed(why)),
                }
            };
            let outcome = timeout(limit, outcome).await;
            flows.end().await;
            outcome.map_err(|_| RunError::TimeLimit {
                seconds: limit.as_secs_f64(),
            })?
        });
        // Endpoints that still exist are dropped with the runtime, while their hosts still exist.
        drop(runtime);
        drop(stressed);
        let report = emulation.stop();
        if let Some(file) = file {
            file.finish().map_err(cannot_capture)?;
        }
        let mut outcome = outcome?;
        self.note(&report, &mut outcome);
        Ok(outcome)
    }
}

impl Emulator {
    /// Marks the outcome as invalid if the emulation was too late.
    fn note(&self, report: &Report, outcome: &mut Outcome) {
        outcome.virtual_s = report.duration.as_secs_f64();
        outcome.packets = report.hosts.iter().map(|(_, tally)| tally.sent).sum();
        if !report.is_valid(self.bound) {
            let late = report.lateness.percentile(990).as_secs_f64();
            outcome.invalid = Some(format!(
                "more than 1 % of the packets were {} late or more, over the bound of {}",
                units::seconds(late),
                units::seconds(self.bound.as_secs_f64())
            ));
        }
    }
}

impl From<EmuError> for RunError {
    /// A capability that the machine lacks fails every run.
    fn from(error: EmuError) -> Self {
        if error.is_missing_privilege() {
            Self::Unsupported(error.to_string())
        } else {
            Self::Failed(error.to_string())
        }
    }
}

fn begin_capture(fabric: &mut Fabric<IpPacket>, path: &Path) -> Result<Spooler, RunError> {
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(cannot_capture)?;
    }
    capture(fabric, path).map_err(cannot_capture)
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn cannot_capture(error: std::io::Error) -> RunError {
    RunError::Failed(format!("cannot write the capture: {error}"))
}
