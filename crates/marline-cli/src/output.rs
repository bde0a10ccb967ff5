//! Standard output, which its reader may close at any time, as `head` does, and standard error. Control characters are
//! escaped: names, titles and reasons come from files and peers.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::process::exit;

use marline_report::terminal;

use crate::failure::Failure;

/// Prints to standard output as `print!` does. Ends the process with a message if that fails: its reader may have
/// closed it, as `head` does, or the disk may be full.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}

/// As [`out!`], with the end of a line.
macro_rules! outln {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

/// Prints a line to standard error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::print_error(format_args!($($text)*)) };
}

pub(crate) fn print_error(line: Arguments<'_>) {
    // If standard error is closed, the message cannot be reported at all.
    let _ = writeln!(io::stderr().lock(), "{}", terminal::line(&line.to_string()));
}

pub(crate) fn print(text: Arguments<'_>) {
    let text = text.to_string();
    let text = terminal::lines(&text);
    if let Err(failure) = write(text.as_bytes()) {
        exit(failure.report_status().into())
    }
}

/// Writes bytes to standard output as they are.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(Failure::Output)
}
