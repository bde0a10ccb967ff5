//! Machines in virtual time, and the verbs with which this program runs inside them. These are hidden, because
//! they are of no use elsewhere.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use marline_lab::kernel::{self, Image, KernelError, Machine, Task, Work};

use crate::failure::Failure;
use crate::output;

/// Become a kernel in virtual time
#[derive(Debug, Args)]
pub(crate) struct Launch {
    /// The process that starts it, with which it ends
    parent: i32,

    /// The processor on which it runs
    processor: usize,

    /// The kernel and its arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    command: Vec<OsString>,
}

/// Be the first process in a machine
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// Arguments that the kernel adds for its first process
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    _added: Vec<OsString>,
}

/// The machine, with the image to boot and this program.
pub(super) fn machine() -> Result<Machine, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Failed(format!("cannot find this program: {error}")))?;
    Ok(Machine::new(Image::find()?, program))
}

/// The longest standard input that is passed on: it is held in memory.
const MAX_INPUT: u64 = 1 << 28;

/// Runs this command again, inside a machine, with the clock at the next midnight (UTC): certificates that were made today are
/// valid, and the command is repeatable until then.
pub(super) fn repeat_inside(seed: u64) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Failed(error.to_string());
    let machine = machine()?;
    let mut input = Vec::new();
    if !io::stdin().is_terminal() {
        let read = io::stdin().take(MAX_INPUT + 1).read_to_end(&mut input);
        if read.map_err(|error| failed(&error))? as u64 > MAX_INPUT {
            let why = format!(
                "standard input has more than {MAX_INPUT} bytes; let the program read a file"
            );
            return Err(Failure::Usage(why));
        }
    }
    let mut command = vec![machine.program().into()];
    command.extend(std::env::args_os().skip(1));
    let task = Task {
        work: Work::Program {
            command,
            environment: std::env::vars_os().collect(),
            input,
        },
        directory: std::env::current_dir().map_err(|error| failed(&error))?,
        seed: seed.to_string(),
        start: next_midnight(),
        limit: None,
    };
    let stop = super::stop_switch()?;
    let finished = match machine.run(&task, Some(&stop)) {
        Err(KernelError::Interrupted) => return Err(Failure::Status(INTERRUPTED)),
        finished => finished?,
    };
    let _ = io::stderr().write_all(&finished.errors);
    output::write(&finished.output)?;
    match finished.status {
        0 => Ok(()),
        status => Err(Failure::Status(status)),
    }
}

/// The next midnight, since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "certificates that programs check are made and expire in real time"
)]
fn next_midnight() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let days = now.unwrap_or_default().as_secs() / DAY;
    Duration::from_secs((days + 1) * DAY)
}

/// Seconds of a day.
const DAY: u64 = 24 * 60 * 60;
/// The exit status of shells for a program that SIGINT ended.
const INTERRUPTED: u8 = 130;

/// Returns only if it fails.
pub(super) fn launch(arguments: &Launch) -> Failure {
    let Launch {
        parent,
        processor,
        command,
    } = arguments;
    let error = kernel::launch(*parent, *processor, command);
    Failure::Failed(format!("cannot become the kernel in virtual time: {error}"))
}

/// Runs as the first process in a machine.
pub(super) fn init() -> Result<(), Failure> {
    match kernel::become_init()? {}
}

impl From<KernelError> for Failure {
    fn from(error: KernelError) -> Self {
        match error {
            KernelError::NotGuest => Self::Usage(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}
