//! Standard output, which its reader may close at any time, as `head` does.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::exit;

use crate::failure::print_message;

/// Prints to standard output as `print!` does. Ends the process if that fails, without a message if the reader has
/// closed the pipe: nobody waits for the rest.
macro_rules! out {
    ($($text:tt)*) => { $crate::output::print(format_args!($($text)*)) };
}

/// As [`out!`], with the end of a line.
macro_rules! outln {
    () => { $crate::output::print(format_args!("\n")) };
    ($($text:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($text)*))) };
}

pub(crate) fn print(text: Arguments<'_>) {
    match io::stdout().lock().write_fmt(text) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            print_message(&format!("cannot write to standard output: {error}"));
            exit(1)
        }
    }
}
