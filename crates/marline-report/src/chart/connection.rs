//! The charts of a connection.

use super::{Axis, Chart, Style, Unit};
use crate::timeline::{PathTimeline, Timeline};

impl Timeline {
    /// The connection in pictures: for each path its window with states and losses, and its RTT.
    pub fn charts(&self) -> Vec<Chart> {
        let many = self.paths.len() > 1;
        self.paths
            .iter()
            .flat_map(|path| {
                let suffix = match path.tuple.as_str() {
                    _ if !many => String::new(),
                    "" => ", path 0".to_owned(),
                    tuple => format!(", path {tuple}"),
                };
                [self.window(path, &suffix), self.rtt(path, &suffix)]
            })
            .filter(|chart| !chart.is_empty())
            .collect()
    }

    fn time_axis(&self) -> Axis {
        Axis::new("time", Unit::Seconds).spanning(0.0, self.duration_s)
    }

    fn window(&self, path: &PathTimeline, suffix: &str) -> Chart {
        Chart::new(
            format!("Congestion window{suffix}"),
            self.time_axis(),
            Axis::new("window", Unit::Bytes),
        )
        .series(
            "congestion window",
            Style::Steps,
            path.congestion_window.clone(),
        )
        .series("bytes in flight", Style::Area, path.bytes_in_flight.clone())
        .series("slow-start threshold", Style::Steps, path.ssthresh.clone())
        .states("state", &path.states, self.duration_s)
        .moments("lost", path.losses.clone())
        .moments("spurious", path.spurious_losses.clone())
    }

    fn rtt(&self, path: &PathTimeline, suffix: &str) -> Chart {
        Chart::new(
            format!("Round-trip time{suffix}"),
            self.time_axis(),
            Axis::new("RTT", Unit::Seconds),
        )
        .series("smoothed", Style::Steps, path.smoothed_rtt.clone())
        .series("samples", Style::Points, path.latest_rtt.clone())
    }
}
