//! The progress of runs.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use marline_lab::run::Progress;

/// Lines that are printed if standard error is not a terminal.
const LINES: usize = 10;

/// A progress bar on a terminal, else [`LINES`] lines.
pub(crate) struct Bar {
    bar: Option<ProgressBar>,
    name: String,
    lines: usize,
}

impl Bar {
    pub(crate) fn new(name: &str) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            let template = "{msg} {wide_bar} {pos}/{len} runs, {eta} left";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(name.to_owned());
            bar
        });
        Self {
            bar,
            name: name.to_owned(),
            lines: 0,
        }
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(progress.total as u64);
            bar.set_position(progress.done as u64);
            if progress.failed > 0 {
                bar.set_message(format!("{} ({} failed)", self.name, progress.failed));
            }
            return;
        }
        let lines = progress.done * LINES / progress.total.max(1);
        if lines > self.lines && progress.done < progress.total {
            self.lines = lines;
            let left = progress.left.map_or(String::new(), |left| {
                format!(", {} s left", left.max(Duration::from_secs(1)).as_secs())
            });
            errln!(
                "{}: {}/{} runs{left}",
                self.name,
                progress.done,
                progress.total
            );
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
