//! Machines in virtual time, and the verbs with which this program runs inside them. These are hidden, because
//! they are of no use elsewhere.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Read, Write};
use std::time::Duration;

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

/// Runs this command again, inside a machine whose clock begins at `date`.
pub(super) fn repeat_inside(seed: u64, date: Date) -> Result<(), Failure> {
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
        start: date.0,
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

/// The beginning of a day (UTC) as the time of a machine's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date(Duration);

impl Default for Date {
    /// That of the runs of experiments.
    fn default() -> Self {
        Self(kernel::START)
    }
}

impl std::str::FromStr for Date {
    type Err = String;

    /// Reads `2026-01-31`, from 1970 on.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        days_since_1970(text)
            .map(|days| Self(Duration::from_secs(days * DAY)))
            .ok_or_else(|| {
                format!("\"{text}\" is not a day; write the last of January as 2026-01-31")
            })
    }
}

/// Days from 1970-01-01 to a day from 1970 to 2100, after which not every fourth year is a leap year.
fn days_since_1970(text: &str) -> Option<u64> {
    let mut numbers = text.split('-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let is_leap = year.is_multiple_of(4);
    let february = if is_leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month).ok()?.checked_sub(1)?;
    let length = *lengths.get(before)?;
    if numbers.next().is_some() || !(1970..2100).contains(&year) || !(1..=length).contains(&day) {
        return None;
    }
    let years = (year - 1970) * 365 + (year - 1969) / 4;
    Some(years + lengths[..before].iter().sum::<u64>() + day - 1)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_days_since_1970() {
        for (text, days) in [
            ("1970-01-01", 0),
            ("1972-02-29", 789),
            ("1972-03-01", 790),
            ("2000-02-29", 11_016),
            ("2026-01-01", 20_454),
            ("2099-12-31", 47_481),
        ] {
            assert_eq!(days_since_1970(text), Some(days), "{text}");
        }
        assert_eq!("2026-01-01".parse(), Ok(Date::default()));
    }

    #[test]
    fn other_words_are_no_dates() {
        for text in [
            "",
            "today",
            "2026-1",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "1969-12-31",
            "2026-01-01-1",
        ] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
    }
}
