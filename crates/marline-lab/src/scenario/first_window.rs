//! The first congestion window, as scenarios and results say it.

use std::sync::Arc;

use marline::TransportConfig;
use marline::congestion::FixedWindow;
use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::{HistoryConfig, HistoryPolicy, MemoryStore, StoreLimits};
use marline::settings::{Shown, show};

use super::Value;
use super::document::{Item, Node, Table};
use super::endpoint::shown_value;

/// With which window connections begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FirstWindow {
    /// Where nothing is known, in packets; `None` is the profile's.
    pub fallback: Option<u64>,
    /// What is made of earlier connections, if anything.
    pub learnt: Option<Box<Learnt>>,
}

/// What is made of earlier connections.
#[derive(Clone, Debug, PartialEq)]
pub struct Learnt {
    /// How it is learnt.
    pub history: HistoryConfig,
    /// How a path returns carefully to what it carried; `None` is to begin with the average window.
    pub careful: Option<CarefulResumeConfig>,
}

impl FirstWindow {
    /// Puts it in place of the policies of a profile. What it learns is its own: it begins with nothing.
    pub(super) fn apply(&self, config: &mut TransportConfig) {
        if let Some(packets) = self.fallback {
            config.initial_window = Arc::new(FixedWindow { packets });
            config.history = None;
        }
        let Some(Learnt { history, careful }) = self.learnt.as_deref() else {
            return;
        };
        // The clients keep what is learnt in their tokens.
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

/// Makes what switches of history start from.
type HistoryBase = fn() -> HistoryConfig;

/// What switches of history start from, by name.
pub(super) const HISTORIES: [(&str, HistoryBase); 2] = [
    ("published", HistoryConfig::published),
    ("default", HistoryConfig::default),
];

/// Makes what switches of careful resume start from.
type CarefulBase = fn() -> CarefulResumeConfig;

/// What switches of careful resume start from, by name.
pub(super) const CAREFULS: [(&str, CarefulBase); 2] = [
    ("default", CarefulResumeConfig::default),
    ("tokens", || CarefulResumeConfig {
        tokens: true,
        ..CarefulResumeConfig::default()
    }),
];

/// Makes a table of `initial_window = 10` and `initial_window = "history"`, so that single switches can be
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
    /// Every switch as results have it.
    pub(super) fn shown(&self) -> Value {
        let mut entries = show(HistoryConfig::SETTINGS, &self.history);
        if let Some(careful) = &self.careful {
            let careful = show(CarefulResumeConfig::SETTINGS, careful);
            entries.push(("careful", Shown::Table(careful)));
        }
        shown_value(Shown::Table(entries))
    }
}
