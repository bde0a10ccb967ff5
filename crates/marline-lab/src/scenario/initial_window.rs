//! The initial window, as in scenarios and results.

use std::sync::Arc;

use marline::TransportConfig;
use marline::congestion::FixedWindow;
use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore, StoreLimits};
use marline::settings::{Shown, show};

use super::Value;
use super::document::{Item, Node, Table};
use super::endpoint::shown_value;

/// The initial window of connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitialWindow {
    /// The window without earlier connections, in packets; `None` is that of the profile.
    pub fallback: Option<u64>,
    /// The use of earlier connections, if any.
    pub learnt: Option<Box<Learnt>>,
}

/// The use of earlier connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// The recording and averaging of their windows.
    pub history: HistoryConfig,
    /// Careful resume; `None` begins with the average window.
    pub careful: Option<CarefulResumeConfig>,
}

impl InitialWindow {
    /// Replaces the policy of a profile. The history is empty, and shared with no other endpoint.
    pub(super) fn apply(&self, config: &mut TransportConfig) {
        if let Some(packets) = self.fallback {
            config.initial_window = Arc::new(FixedWindow { packets });
            config.history = None;
        }
        let Some(Learnt { history, careful }) = self.learnt.as_deref() else {
            return;
        };
        // The clients keep the saved parameters in their tokens.
        if !careful.is_some_and(|careful| careful.tokens) {
            let store = Arc::new(MemoryStore::new(StoreLimits {
                lifetime: history.lifetime,
                ..StoreLimits::default()
            }));
            let policy = match careful {
                Some(_) => HistoryPolicy::Careful,
                None => HistoryPolicy::Average,
            };
            config.set_history(policy, history.clone(), store);
        }
        if let Some(careful) = careful {
            config.careful_resume = *careful;
        }
    }
}

/// Makes a base configuration of history.
type HistoryBase = fn() -> HistoryConfig;

/// The base configurations of history, by name.
pub(super) const HISTORIES: [(&str, HistoryBase); 2] = [
    ("published", HistoryConfig::published),
    ("default", HistoryConfig::default),
];

/// Makes a base configuration of careful resume.
type CarefulBase = fn() -> CarefulResumeConfig;

/// The base configurations of careful resume, by name.
pub(super) const CAREFULS: [(&str, CarefulBase); 2] = [
    ("default", CarefulResumeConfig::default),
    ("tokens", || CarefulResumeConfig {
        tokens: true,
        ..CarefulResumeConfig::default()
    }),
];

/// Turns `initial_window = 10` and `initial_window = "history"` into tables, so that single switches can be
/// replaced.
pub(super) fn take_apart(node: Node) -> Node {
    let key = match &node.item {
        Item::Integer(_) => "fallback",
        Item::Text(text) if text == "history" => "history",
        Item::Text(text) if text == "careful" => "careful",
        _ => return node,
    };
    let place = node.place.clone();
    let value = match node.item {
        Item::Text(_) => Item::Text("default".to_owned()),
        number => number,
    };
    let value = Node {
        place: place.clone(),
        item: value,
    };
    Node {
        place,
        item: Item::Table(Table(vec![(key.to_owned(), value)])),
    }
}

impl Learnt {
    /// Every switch, as in results.
    pub(super) fn shown(&self) -> Value {
        let mut entries = show(HistoryConfig::SETTINGS, &self.history);
        if let Some(careful) = &self.careful {
            let careful = show(CarefulResumeConfig::SETTINGS, careful);
            entries.push(("careful", Shown::Table(careful)));
        }
        shown_value(Shown::Table(entries))
    }
}
