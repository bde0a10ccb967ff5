//! A progress bar for transfers that take longer than two seconds.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use marline_http::client::Progress;
use tokio::time::sleep;

/// The delay before the bar is shown.
const SHOW_AFTER: Duration = Duration::from_secs(2);

/// The interval of updates.
const TICK: Duration = Duration::from_millis(100);

/// Shows `progress` on a terminal until dropped.
pub(crate) async fn show(progress: Arc<Progress>, objects: usize, is_wanted: bool) {
    if !is_wanted || !std::io::stderr().is_terminal() {
        return std::future::pending().await;
    }
    sleep(SHOW_AFTER).await;
    let bar = Bar(ProgressBar::new(0));
    let template =
        "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta} {msg}";
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.0.set_style(style);
    }
    loop {
        bar.0.set_length(progress.expected.load(Relaxed));
        bar.0.set_position(progress.received.load(Relaxed));
        if objects > 1 {
            let finished = progress.finished.load(Relaxed);
            bar.0.set_message(format!("{finished}/{objects} objects"));
        }
        sleep(TICK).await;
    }
}

/// A bar that is cleared when dropped.
struct Bar(ProgressBar);

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
