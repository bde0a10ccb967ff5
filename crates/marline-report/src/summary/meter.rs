//! Statistics over events.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Numbers, Rtt};
use crate::ordered::Ordered;
use crate::qlog::Event;

/// Whether the event concerns the path it names, and not the whole connection.
pub(super) fn concerns_path(event: &Event) -> bool {
    matches!(
        event.kind(),
        "packet_sent"
            | "packet_received"
            | "packet_lost"
            | "packets_acked"
            | "spurious_loss"
            | "metrics_updated"
            | "congestion_state_updated"
    )
}

/// The statistics of a connection or a path.
#[derive(Debug, Default)]
pub(super) struct Meter {
    numbers: Numbers,
    span: Option<(f64, f64)>,
    latest_rtt: Vec<f64>,
    smoothed_rtt: Vec<f64>,
    state: Option<State>,
    states: Ordered<String, (String, f64)>,
    /// Packet number spaces and numbers of packets declared lost.
    lost: BTreeSet<(Space, u64)>,
    /// The number of these that were acknowledged later, in case the log has no such events.
    acknowledged_after_loss: u64,
}

/// A state of the congestion controller.
#[derive(Debug)]
struct State {
    name: String,
    since: f64,
}

/// A packet number space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Space {
    Initial,
    Handshake,
    Application,
}

impl Space {
    /// The space of a packet type, or with a name.
    fn of(name: Option<&str>) -> Self {
        match name {
            Some("initial") => Self::Initial,
            Some("handshake") => Self::Handshake,
            _ => Self::Application,
        }
    }
}

impl Meter {
    pub(super) fn add(&mut self, event: &Event) {
        let time = event.time_s;
        let span = self.span.get_or_insert((time, time));
        *span = (span.0.min(time), span.1.max(time));
        match event.kind() {
            "packet_sent" => {
                self.numbers.packets_sent += 1;
                self.numbers.bytes_sent = self.numbers.bytes_sent.saturating_add(size(event));
            }
            "packet_received" => {
                self.numbers.packets_received += 1;
                self.numbers.bytes_received =
                    self.numbers.bytes_received.saturating_add(size(event));
                self.acknowledged_by(event);
            }
            "packet_dropped" => self.numbers.packets_dropped += 1,
            "packet_lost" => self.lost(event),
            "packets_acked" => {
                let space = Space::of(event.text(&["packet_number_space"]));
                for number in list(&event.data, "packet_numbers").iter().filter_map(whole) {
                    self.acknowledged(space, number, number);
                }
            }
            "spurious_loss" => self.numbers.spurious_losses += 1,
            "metrics_updated" => self.metrics(event),
            "congestion_state_updated" => self.enter_state(event),
            _ => {}
        }
    }

    fn lost(&mut self, event: &Event) {
        let trigger = event.text(&["trigger"]).unwrap_or("unknown");
        *self.numbers.lost.entry(trigger.to_owned()).or_default() += 1;
        let header = |key| event.data.get("header").and_then(|header| header.get(key));
        let number = header("packet_number").or_else(|| event.data.get("packet_number"));
        if let Some(number) = number.and_then(whole) {
            let kind = header("packet_type").or_else(|| event.data.get("packet_type"));
            let space = Space::of(kind.and_then(Value::as_str));
            self.lost.insert((space, number));
        }
    }

    /// Checks the ACK frames of a packet for packets declared lost.
    fn acknowledged_by(&mut self, event: &Event) {
        if self.lost.is_empty() {
            return;
        }
        let packet_type = event
            .text(&["header", "packet_type"])
            .or_else(|| event.text(&["packet_type"]));
        let space = Space::of(packet_type);
        for frame in list(&event.data, "frames") {
            for range in list(frame, "acked_ranges") {
                let Some(range) = range.as_array() else {
                    continue;
                };
                let ends = (range.first().and_then(whole), range.last().and_then(whole));
                if let (Some(low), Some(high)) = ends {
                    self.acknowledged(space, low, high);
                }
            }
        }
    }

    fn acknowledged(&mut self, space: Space, low: u64, high: u64) {
        if low > high {
            return;
        }
        while let Some(&packet) = self.lost.range((space, low)..=(space, high)).next() {
            self.lost.remove(&packet);
            self.acknowledged_after_loss += 1;
        }
    }

    fn metrics(&mut self, event: &Event) {
        let rtt = |key| event.number(&[key]).map(|ms| ms / 1e3);
        self.latest_rtt.extend(rtt("latest_rtt"));
        self.smoothed_rtt.extend(rtt("smoothed_rtt"));
        let numbers = &mut self.numbers;
        for (key, max) in [
            ("congestion_window", &mut numbers.max_congestion_window),
            ("bytes_in_flight", &mut numbers.max_bytes_in_flight),
        ] {
            *max = (*max).max(event.data.get(key).and_then(whole));
        }
    }

    fn enter_state(&mut self, event: &Event) {
        let Some(new) = event.text(&["new"]) else {
            return;
        };
        let before = self.state.take().or_else(|| {
            let since = self.span.map_or(event.time_s, |(first, _)| first);
            Some(State {
                name: event.text(&["old"])?.to_owned(),
                since,
            })
        });
        self.leave_state(before, event.time_s);
        self.state = Some(State {
            name: new.to_owned(),
            since: event.time_s,
        });
    }

    fn leave_state(&mut self, state: Option<State>, now: f64) {
        let Some(State { name, since }) = state else {
            return;
        };
        let time = (now - since).max(0.0);
        let state = self
            .states
            .get_or_insert_with(&name, || (name.clone(), 0.0));
        state.1 += time;
    }

    pub(super) fn finish(mut self) -> Numbers {
        let (first, last) = self.span.unwrap_or_default();
        let state = self.state.take();
        self.leave_state(state, last);
        let samples = if self.latest_rtt.is_empty() {
            self.smoothed_rtt
        } else {
            self.latest_rtt
        };
        let mut numbers = self.numbers;
        numbers.states = self.states.into_values();
        numbers.duration_s = last - first;
        numbers.rtt_s = rtt(samples);
        if numbers.spurious_losses == 0 {
            numbers.spurious_losses = self.acknowledged_after_loss;
        }
        numbers
    }
}

fn rtt(mut samples: Vec<f64>) -> Option<Rtt> {
    samples.sort_by(f64::total_cmp);
    let middle = samples.len() / 2;
    Some(Rtt {
        samples: samples.len(),
        min: *samples.first()?,
        median: if samples.len().is_multiple_of(2) {
            f64::midpoint(samples[middle - 1], samples[middle])
        } else {
            samples[middle]
        },
        max: *samples.last()?,
    })
}

/// Size of a packet in bytes, in the format of any version.
fn size(event: &Event) -> u64 {
    [
        &["raw", "length"][..],
        &["header", "packet_size"],
        &["packet_size"],
        &["raw", "payload_length"],
    ]
    .iter()
    .find_map(|keys| event.number(keys))
    .map_or(0, |bytes| bytes as u64)
}

/// An integer, which may be quoted.
pub(super) fn whole(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => text.parse().ok(),
        value => value
            .as_u64()
            .or_else(|| value.as_f64().filter(|x| *x >= 0.0).map(|x| x as u64)),
    }
}

/// The list at `key`, or an empty one.
pub(super) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}
