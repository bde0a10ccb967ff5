//! A machine in virtual time, from this side.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::num::NonZero;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::guest::NO_RDRAND;
use super::scratch::{
    CONSOLE, ERRORS, INIT, INPUT, OUTPUT, Program, RawValue, STATUS, TASK, Variable, WrittenWork,
    read, tail,
};
use super::{Image, KernelError, limits};

/// The interval of checks of a machine.
const POLL_INTERVAL: Duration = Duration::from_millis(4);

/// The environment of a machine's first process, and so of jobs, in addition to the kernel's variables from its command
/// line: the path of programs, and nothing from this machine's environment, because a run must not depend on its user.
const ENVIRONMENT: [(&str, &str); 5] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", "/run"),
    ("TMPDIR", "/run"),
    ("LANG", "C.UTF-8"),
    NO_RDRAND,
];

/// A task for which a machine is booted.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its work.
    pub work: Work,
    /// The working directory.
    pub directory: PathBuf,
    /// The seed of the machine's random numbers, at most 31 bytes.
    pub seed: String,
    /// The time of the machine's clock at its start, since 1970.
    pub start: Duration,
    /// The most real time it may take; `None` is without limit.
    pub limit: Option<Duration>,
}

/// The work of a machine.
#[derive(Clone, Debug)]
pub enum Work {
    /// To run a program.
    Program {
        /// The program and its arguments.
        command: Vec<OsString>,
        /// Its environment.
        environment: Vec<(OsString, OsString)>,
        /// Its standard input.
        input: Vec<u8>,
    },
    /// To execute a job that [`VirtualTime`](super::VirtualTime) has written. The first process executes it itself:
    /// starting another one was a quarter of the cost of a short run.
    Job(Vec<u8>),
}

/// The result of a task.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its exit status, as in shells.
    pub status: u8,
    /// Its standard output, or the answer to a job.
    pub output: Vec<u8>,
    /// Its standard error, or the reason why there is no answer.
    pub errors: Vec<u8>,
}

/// Boots machines, each for a task.
#[derive(Clone, Debug)]
pub struct Machine {
    image: Image,
    program: PathBuf,
}

impl Machine {
    /// Machines with the kernel `image`. `program` is the command `marline`, which becomes the first process in each.
    pub const fn new(image: Image, program: PathBuf) -> Self {
        Self { image, program }
    }

    /// The command `marline`.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Boots, runs `task`, and switches off. When `stop` is set, the machine is ended.
    ///
    /// # Errors
    /// The machine does not start, ends before the task does, or is ended.
    pub fn run(&self, task: &Task, stop: Option<&AtomicBool>) -> Result<Finished, KernelError> {
        let directory = tempfile::Builder::new()
            .prefix("marline-kernel-")
            .tempdir()
            .map_err(KernelError::system("creating a temporary directory"))?;
        let shared = directory.path();
        self.prepare(task, shared)
            .map_err(KernelError::system("writing to a temporary directory"))?;
        let processor = Processor::take().map_err(KernelError::system("looking for processors"))?;
        let running = self
            .boot(task, shared, processor.number)
            .map_err(KernelError::system("starting the kernel in virtual time"))?;
        let status = running.wait(task.limit, stop)?;
        let ended = |status: String| {
            let console = tail(&shared.join(CONSOLE), limits::CONSOLE);
            let colon = if console.is_empty() { "" } else { ": " };
            KernelError::Ended {
                status,
                console: format!("{colon}{console}"),
            }
        };
        let Ok(written) = fs::read_to_string(shared.join(STATUS)) else {
            return Err(ended(status.to_string()));
        };
        let Ok(status) = written.parse::<u8>() else {
            return Err(ended(written));
        };
        let printed = |name: &str| {
            read(&shared.join(name), limits::PRINTED)
                .map_err(KernelError::system("reading the program's output"))?
                .ok_or(KernelError::TooMuch {
                    limit: limits::PRINTED,
                })
        };
        Ok(Finished {
            status,
            output: printed(OUTPUT)?,
            errors: printed(ERRORS)?,
        })
    }

    /// Writes the machine's input into the shared directory.
    fn prepare(&self, task: &Task, shared: &Path) -> std::io::Result<()> {
        let directory = task.directory.clone();
        let (work, input) = match &task.work {
            Work::Program {
                command,
                environment,
                input,
            } => (
                WrittenWork::Program(Program {
                    command: command.clone(),
                    environment: environment.iter().map(Variable::from).collect(),
                }),
                input,
            ),
            Work::Job(written) => (WrittenWork::Job, written),
        };
        let written = RawValue { directory, work };
        fs::write(shared.join(TASK), serde_json::to_vec(&written)?)?;
        fs::write(shared.join(INPUT), input)?;
        std::os::unix::fs::symlink(&self.program, shared.join(INIT))
    }

    /// Starts the kernel. Its command line is equal for equal tasks, because random numbers derive from it too.
    fn boot(&self, task: &Task, shared: &Path, processor: usize) -> std::io::Result<Running> {
        let console = File::create(shared.join(CONSOLE))?;
        let process = Command::new(&self.program)
            .args(["lab", "virtual-machine"])
            .arg(std::process::id().to_string())
            .arg(processor.to_string())
            .arg(self.image.path())
            .arg(format!("mem={}", limits::MEMORY))
            // The first process makes it writable, so that earlier reads do not update access times,
            // either.
            .args(["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"])
            .args(["con=null", "con0=null,fd:1", "uml_dir=.", "quiet"])
            .arg("time-travel=inf-cpu")
            .arg(format!("time-travel-start={}", task.start.as_nanos()))
            .arg(format!("rng-seed={}", task.seed))
            .args(ENVIRONMENT.map(|(name, value)| format!("{name}={value}")))
            .arg(format!("init=/proc/self/cwd/{INIT}"))
            .args(["--", "lab", "virtual-init"])
            .current_dir(shared)
            .stdin(Stdio::null())
            .stdout(console.try_clone()?)
            .stderr(console)
            // An interrupt from the terminal does not reach it.
            .process_group(0)
            .spawn()?;
        Ok(Running { process })
    }
}

/// A machine that runs; it is killed when this is dropped.
struct Running {
    process: Child,
}

impl Running {
    fn wait(
        mut self,
        limit: Option<Duration>,
        stop: Option<&AtomicBool>,
    ) -> Result<ExitStatus, KernelError> {
        let start = now();
        loop {
            let ended = self.process.try_wait();
            if let Some(status) = ended.map_err(KernelError::system("waiting for the kernel"))? {
                return Ok(status);
            }
            if stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
                return Err(KernelError::Interrupted);
            }
            if let Some(limit) = limit.filter(|&limit| now().duration_since(start) > limit) {
                return Err(KernelError::TooLong { limit });
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let (Ok(None), Ok(id)) = (self.process.try_wait(), i32::try_from(self.process.id())) {
            // The kernel's processes end with it. It may have ended meanwhile.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
            let _ = self.process.wait();
        }
    }
}

/// The processors on which machines of this process run.
static TAKEN: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// A processor for a machine: one without another machine of this process, if there is any.
struct Processor {
    number: usize,
    is_taken: bool,
}

impl Processor {
    fn take() -> nix::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        let is_allowed = |&number: &usize| set.is_set(number).unwrap_or(false);
        let allowed: Vec<_> = (0..CpuSet::count()).filter(is_allowed).collect();
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = allowed.iter().find(|number| !taken.contains(number));
        if let Some(&number) = free {
            taken.insert(number);
            return Ok(Self {
                number,
                is_taken: true,
            });
        }
        // More machines than processors: any of these.
        let count = NonZero::new(allowed.len()).map_or(1, NonZero::get);
        let number = allowed.get(std::process::id() as usize % count);
        Ok(Self {
            number: number.copied().unwrap_or_default(),
            is_taken: false,
        })
    }
}

impl Drop for Processor {
    fn drop(&mut self) {
        if self.is_taken {
            let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
            taken.remove(&self.number);
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a limit of real time keeps a machine that does not end from running for ever"
)]
fn now() -> Instant {
    Instant::now()
}
