//! Time series of a connection, for charts.

use std::collections::HashMap;
use std::path::Path;

use crate::qlog::{self, Event};

/// A time series: pairs of seconds since the first event and value.
pub type Series = Vec<(f64, f64)>;

/// Time series of a connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Each path, in order of appearance.
    pub paths: Vec<PathTimeline>,
    /// The indices of the paths by their names.
    places: HashMap<String, usize>,
    /// Actions of the engine of the connection's bundle, with their times.
    pub decisions: Vec<(f64, String)>,
    first_s: Option<f64>,
    /// Seconds from the first event to the last.
    pub duration_s: f64,
}

/// Time series of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathTimeline {
    /// The path's name in the log.
    pub tuple: String,
    /// Congestion window, in bytes.
    pub congestion_window: Series,
    /// Bytes in flight.
    pub bytes_in_flight: Series,
    /// Slow-start threshold, in bytes.
    pub ssthresh: Series,
    /// RTT samples, in seconds.
    pub latest_rtt: Series,
    /// Smoothed RTT, in seconds.
    pub smoothed_rtt: Series,
    /// When packets were declared lost.
    pub losses: Vec<f64>,
    /// When a loss was found to be spurious.
    pub spurious_losses: Vec<f64>,
    /// States of the congestion controller, with the time each was entered.
    pub states: Vec<(f64, String)>,
}

impl Timeline {
    /// Reads the first connection of a qlog file; skips malformed records.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, qlog::Error> {
        let mut timeline = Self::default();
        let mut connection = None;
        for event in qlog::read(path)? {
            let event = match event {
                Ok(event) => event,
                Err(error @ (qlog::Error::Io { .. } | qlog::Error::NoEvents { .. })) => {
                    return Err(error);
                }
                Err(qlog::Error::Record { .. }) => continue,
            };
            let key = (event.source.index, event.group.clone());
            if *connection.get_or_insert_with(|| key.clone()) == key {
                timeline.add(&event);
            }
        }
        Ok(timeline)
    }

    /// Adds an event of the connection.
    pub fn add(&mut self, event: &Event) {
        let time = event.time_s - *self.first_s.get_or_insert(event.time_s);
        self.duration_s = self.duration_s.max(time);
        match event.kind() {
            "metrics_updated" => {
                let path = self.path(&event.tuple);
                for (key, series, divisor) in [
                    ("congestion_window", &mut path.congestion_window, 1.0),
                    ("bytes_in_flight", &mut path.bytes_in_flight, 1.0),
                    ("ssthresh", &mut path.ssthresh, 1.0),
                    ("latest_rtt", &mut path.latest_rtt, 1e3),
                    ("smoothed_rtt", &mut path.smoothed_rtt, 1e3),
                ] {
                    series.extend(event.number(&[key]).map(|value| (time, value / divisor)));
                }
            }
            "packet_lost" => self.path(&event.tuple).losses.push(time),
            "spurious_loss" => self.path(&event.tuple).spurious_losses.push(time),
            "congestion_state_updated" => {
                if let Some(new) = event.text(&["new"]) {
                    let state = (time, new.to_owned());
                    self.path(&event.tuple).states.push(state);
                }
            }
            "bundle_updated" => {
                let action = event.text(&["action"]).filter(|action| *action != "none");
                self.decisions
                    .extend(action.map(|action| (time, action.to_owned())));
            }
            _ => {}
        }
    }

    fn path(&mut self, tuple: &str) -> &mut PathTimeline {
        let at = match self.places.get(tuple) {
            Some(&at) => at,
            None => {
                self.places.insert(tuple.to_owned(), self.paths.len());
                self.paths.push(PathTimeline {
                    tuple: tuple.to_owned(),
                    ..PathTimeline::default()
                });
                self.paths.len() - 1
            }
        };
        &mut self.paths[at]
    }
}
