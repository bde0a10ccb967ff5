//! Standard output, which its reader may close at any time, as `head` does, and standard error. What a terminal would obey is
//! escaped: names, titles and reasons come from files and peers.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::exit;

use marline_report::terminal;

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

/// Prints a line to standard error.
macro_rules! errln {
    ($($text:tt)*) => { $crate::output::print_error(format_args!($($text)*)) };
}

pub(crate) fn print_error(line: Arguments<'_>) {
    // Nobody can be told if it is closed.
    let _ = writeln!(io::stderr().lock(), "{}", terminal::line(&line.to_string()));
}

pub(crate) fn print(text: Arguments<'_>) {
    let text = text.to_string();
    let text = terminal::lines(&text);
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => exit(0),
        Err(error) => {
            print_message(&format!("cannot write to standard output: {error}"));
            exit(1)
        }
    }
}
