//! How far the runs are.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use marline_lab::run::Progress;

/// Without a terminal, a line after every so many parts of the whole.
const LINES: usize = 10;

/// A bar on a terminal, else a line now and then.
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

    pub(crate) fn show(&mut self, told: Progress) {
        if let Some(bar) = &self.bar {
            bar.set_length(told.total as u64);
            bar.set_position(told.done as u64);
            if told.failed > 0 {
                bar.set_message(format!("{} ({} failed)", self.name, told.failed));
            }
            return;
        }
        let lines = told.done * LINES / told.total.max(1);
        if lines > self.lines && told.done < told.total {
            self.lines = lines;
            let left = told.left.map_or(String::new(), |left| {
                format!(", {} s left", left.max(Duration::from_secs(1)).as_secs())
            });
            eprintln!("{}: {}/{} runs{left}", self.name, told.done, told.total);
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
