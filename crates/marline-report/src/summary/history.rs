//! Initial windows of the paths of a connection, and phases of Careful Resume (RFC 9959).

use serde_json::{Value, json};

use super::meter::whole;
use crate::ordered::Ordered;
use crate::qlog::Event;
use crate::units;

/// The initial window of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct InitialWindow {
    /// When it was chosen, in seconds since the log's reference time.
    pub time_s: f64,
    /// The path; empty for the first.
    pub path: String,
    /// The window, in bytes.
    pub window: u64,
    /// The default window of an unknown path, in bytes.
    pub default: Option<u64>,
    /// Whether it was learned from earlier connections.
    pub is_learnt: bool,
}

/// A change of the phase of Careful Resume (RFC 9959), with the names of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumePhase {
    /// When it was entered, in seconds since the log's reference time.
    pub time_s: f64,
    /// The path; empty for the first.
    pub path: String,
    /// The previous phase, if any.
    pub old: Option<String>,
    /// The new phase.
    pub new: String,
    /// The trigger of the change.
    pub trigger: Option<String>,
    /// The congestion window before, in bytes, as logged last.
    pub before: Option<u64>,
    /// The congestion window afterwards, in bytes.
    pub after: Option<u64>,
    /// PipeSize: the bytes validated since the jump.
    pub pipe_size: Option<u64>,
    /// The saved congestion window, in bytes.
    pub saved_window: Option<u64>,
    /// The saved round-trip time, in seconds.
    pub saved_rtt_s: Option<f64>,
}

impl InitialWindow {
    fn of(event: &Event) -> Option<Self> {
        if event.kind() != "initial_window_chosen" {
            return None;
        }
        let window = event.data.get("window").and_then(whole)?;
        let default = event.data.get("default").and_then(whole);
        let learnt = event.data.get("learnt").and_then(Value::as_bool);
        Some(Self {
            time_s: event.time_s,
            path: event.tuple.clone(),
            window,
            default,
            is_learnt: learnt.unwrap_or_else(|| default.is_some_and(|default| window > default)),
        })
    }

    /// As text.
    pub(super) fn text(&self) -> String {
        let window = units::bytes(self.window as f64);
        let mut text = match self.default {
            Some(default) if self.is_learnt => {
                let default = units::bytes(default as f64);
                format!("{window}, from history; {default} by default")
            }
            _ if self.is_learnt => format!("{window}, from history"),
            _ => format!("{window}, the default"),
        };
        if !self.path.is_empty() {
            text += &format!(", on path {}", self.path);
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "time_s": self.time_s,
            "path": self.path,
            "window": self.window,
            "default": self.default,
            "learnt": self.is_learnt,
        })
    }
}

impl ResumePhase {
    /// The phase change in `event`, if it is one; `before` is the path's window until then.
    fn of(event: &Event, before: Option<u64>) -> Option<Self> {
        if event.kind() != "careful_resume_phase_updated" {
            return None;
        }
        let text = |key| event.text(&[key]).map(str::to_owned);
        let inside = |object, key| whole(event.data.get(object)?.get(key)?);
        Some(Self {
            time_s: event.time_s,
            path: event.tuple.clone(),
            old: text("old"),
            new: text("new")?,
            trigger: text("trigger"),
            before,
            after: inside("state_data", "congestion_window"),
            pipe_size: inside("state_data", "pipesize"),
            saved_window: inside("restored_data", "saved_congestion_window"),
            saved_rtt_s: event
                .number(&["restored_data", "saved_rtt"])
                .map(|ms| ms / 1e3),
        })
    }

    /// As text; times are relative to `start_s`.
    pub(super) fn text(&self, start_s: f64) -> String {
        let mut text = format!(
            "{} after {}",
            self.new,
            units::seconds(self.time_s - start_s)
        );
        if let Some(trigger) = &self.trigger {
            text += &format!(", {trigger}");
        }
        let bytes = |window: u64| units::bytes(window as f64);
        match (self.before, self.after) {
            (Some(before), Some(after)) if before != after => {
                text += &format!(", window {} \u{2192} {}", bytes(before), bytes(after));
            }
            (_, Some(after)) => text += &format!(", window {}", bytes(after)),
            _ => {}
        }
        if let (None, Some(window)) = (&self.old, self.saved_window) {
            text += &format!(", saved {}", bytes(window));
            if let Some(rtt) = self.saved_rtt_s {
                text += &format!(" with rtt {}", units::seconds(rtt));
            }
        }
        text
    }

    pub(super) fn to_json(&self) -> Value {
        json!({
            "time_s": self.time_s,
            "path": self.path,
            "old": self.old,
            "new": self.new,
            "trigger": self.trigger,
            "window_before": self.before,
            "window": self.after,
            "pipe_size": self.pipe_size,
            "saved_window": self.saved_window,
            "saved_rtt_s": self.saved_rtt_s,
        })
    }
}

/// Collects both kinds of events, and tracks the windows of paths.
#[derive(Debug, Default)]
pub(super) struct HistoryMeter {
    pub(super) initial_windows: Vec<InitialWindow>,
    pub(super) careful_resume: Vec<ResumePhase>,
    windows: Ordered<String, u64>,
}

impl HistoryMeter {
    pub(super) fn add(&mut self, event: &Event) {
        if let Some(first) = InitialWindow::of(event) {
            self.track(event, first.window);
            self.initial_windows.push(first);
        } else if let Some(phase) = ResumePhase::of(event, self.window(event)) {
            if let Some(window) = phase.after {
                self.track(event, window);
            }
            self.careful_resume.push(phase);
        } else if event.kind() == "metrics_updated"
            && let Some(window) = event.data.get("congestion_window").and_then(whole)
        {
            self.track(event, window);
        }
    }

    fn window(&self, event: &Event) -> Option<u64> {
        self.windows.get(&event.tuple).copied()
    }

    fn track(&mut self, event: &Event, window: u64) {
        *self.windows.get_or_insert_with(&event.tuple, || window) = window;
    }
}

#[cfg(test)]
mod tests;
