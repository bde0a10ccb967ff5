//! Charts of a connection.

use super::{Axis, Chart, Style, Unit};
use crate::timeline::{PathTimeline, Timeline};

/// Actions of a bundle's engine: name in the log, name of the strip, description.
const DECISIONS: [(&str, &str, &str); 8] = [
    ("split", "split", "initial window divided"),
    (
        "synchronized",
        "synced",
        "windows and slow start synchronized",
    ),
    ("coalesced", "merged", "event coalesced with the one before"),
    ("backed_off", "backoff", "all members backed off together"),
    ("exited", "exited", "slow start ended for all members"),
    ("equalized", "equal", "windows made equal"),
    ("equalized_rates", "rates", "rates made equal"),
    (
        "shared",
        "shared",
        "controller shared with the other members",
    ),
];

impl Timeline {
    /// Charts of the connection: per path the congestion window with states and losses, and the RTT.
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
        let chart = Chart::new(
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
        .events("lost", path.losses.clone())
        .events("spurious", path.spurious_losses.clone());
        self.mark_decisions(chart)
    }

    /// Marks the actions of the bundle's engine.
    fn mark_decisions(&self, mut chart: Chart) -> Chart {
        let mut notes = Vec::new();
        for (action, short, words) in DECISIONS {
            let decisions = self.decisions.iter().filter(|(_, logged)| logged == action);
            let times: Vec<_> = decisions.map(|&(at, _)| at).collect();
            if !times.is_empty() {
                notes.push(format!("{short}: {words}"));
                chart = chart.events(short, times);
            }
        }
        match notes.is_empty() {
            true => chart,
            false => chart.note(format!("The bundle: {}.", notes.join("; "))),
        }
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
