//! The progress of a long export.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use marline_report::units;

/// The delay before the bar is shown.
const SHOW_AFTER: Duration = Duration::from_secs(2);

/// A progress bar on a terminal, of bytes that were read.
pub(super) struct Bar {
    bar: Option<ProgressBar>,
    total: Option<u64>,
    start: Instant,
    /// Bytes of the captures before.
    before: u64,
}

impl Bar {
    /// A bar that is not shown yet; `total` is the size of all captures, if it is known.
    #[expect(
        clippy::disallowed_methods,
        reason = "a terminal is watched in real time"
    )]
    pub(super) fn new(total: Option<u64>) -> Self {
        Self {
            bar: None,
            total,
            start: Instant::now(),
            before: 0,
        }
    }

    /// `position` bytes of a capture, and `packets` of all captures were read.
    pub(super) fn show(&mut self, position: u64, packets: u64) {
        if self.bar.is_none() {
            if self.start.elapsed() < SHOW_AFTER || !std::io::stderr().is_terminal() {
                return;
            }
            self.bar = Some(match self.total {
                Some(total) => styled(
                    ProgressBar::new(total),
                    "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {msg}",
                ),
                None => styled(
                    ProgressBar::new_spinner(),
                    "{binary_bytes} {binary_bytes_per_sec} {msg}",
                ),
            });
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.before + position);
            bar.set_message(format!("{} packets", units::count(packets)));
        }
    }

    /// A capture of this size is read.
    pub(super) fn end_file(&mut self, size: u64) {
        self.before += size;
    }

    /// All captures are read.
    pub(super) fn finish(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}
