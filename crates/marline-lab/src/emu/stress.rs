//! Hosts with a processor that has other work.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use tokio::runtime::Runtime;

use super::EmuError;
use crate::scenario::Stress;

/// The host's endpoints and programs run on one processor, beside threads that compute without end, until it is
/// dropped. The kernel's work for packets stays where it is.
pub(super) struct Stressed {
    host: String,
    processor: usize,
    /// Runs the endpoints.
    runtime: Runtime,
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Stressed {
    /// Takes the last processor of this process.
    pub(super) fn start(stress: &Stress) -> Result<Self, EmuError> {
        let processor = last().map_err(EmuError::system("looking for processors"))?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .on_thread_start(move || {
                // It was allowed for this process.
                let _ = confine(processor);
            })
            .build()
            .map_err(EmuError::system("creating a runtime"))?;
        let mut stressed = Self {
            host: stress.host.clone(),
            processor,
            runtime,
            end: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..stress.threads {
            let end = Arc::clone(&stressed.end);
            let compute = move || {
                if confine(processor).is_ok() {
                    while !end.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
            };
            let thread = thread::Builder::new().name("stress".to_owned());
            let thread = thread.spawn(compute);
            let thread = thread.map_err(EmuError::system("starting a thread"))?;
            stressed.threads.push(thread);
        }
        Ok(stressed)
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    pub(super) const fn processor(&self) -> usize {
        self.processor
    }
}

impl Drop for Stressed {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // It cannot panic.
            let _ = thread.join();
        }
    }
}

/// Confines the calling thread, and the programs that it starts, to a processor.
pub(super) fn confine(processor: usize) -> io::Result<()> {
    let mut set = CpuSet::new();
    set.set(processor)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

/// The last of the processors on which this process may run: the emulator keeps the others.
fn last() -> io::Result<usize> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let is_allowed = |&processor: &usize| set.is_set(processor).unwrap_or(false);
    let mut allowed = (0..CpuSet::count()).rev().filter(is_allowed);
    match (allowed.next(), allowed.next()) {
        (Some(last), Some(_)) => Ok(last),
        _ => Err(io::Error::other(
            "the emulator needs one of its own, and this process may run on one only",
        )),
    }
}
