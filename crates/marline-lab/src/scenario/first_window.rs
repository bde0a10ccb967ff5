//! The first congestion window, as scenarios and results say it.

use std::sync::Arc;
use std::time::Duration;

use marline::TransportConfig;
use marline::congestion::FixedWindow;
use marline::coordination::careful_resume::CarefulResumeConfig;
use marline::coordination::history::{
    Average, HistoryConfig, HistoryPolicy, MemoryStore, PathScope, StoreLimits, ZeroRtt,
};
use serde::Serialize;

use super::document::{Item, Node, Table};

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

/// A kind of average, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AverageKind {
    Mean,
    Window,
    Ewma,
}

/// Kinds of averages, by name.
pub(super) const AVERAGES: [(&str, AverageKind); 3] = [
    ("mean", AverageKind::Mean),
    ("window", AverageKind::Window),
    ("ewma", AverageKind::Ewma),
];

/// Whose connections learn from each other, by name.
pub(super) const SCOPES: [(&str, PathScope); 3] = [
    ("prefix", PathScope::Prefix { v4: 24, v6: 48 }),
    ("address", PathScope::Address),
    ("global", PathScope::Global),
];

/// How resumed sessions begin, by name.
pub(super) const ZERO_RTTS: [(&str, ZeroRtt); 3] = [
    ("carry", ZeroRtt::Carry),
    ("history", ZeroRtt::History),
    ("default", ZeroRtt::Default),
];

/// What is no limit.
pub(super) const NONE: &str = "none";

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

/// Every switch as it comes out.
#[derive(Serialize)]
pub(super) struct DescribedLearnt {
    average: &'static str,
    window: Option<usize>,
    weight: Option<f64>,
    scope: String,
    per_server_name: bool,
    zero_rtt: &'static str,
    cap_bytes: Option<u64>,
    raise_only_when_limited: bool,
    lifetime_s: Option<f64>,
    careful: Option<DescribedCareful>,
}

#[derive(Serialize)]
struct DescribedCareful {
    max_jump_bytes: Option<u64>,
    lifetime_s: f64,
    beta: f64,
    /// Whether clients remember, not the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tokens: bool,
}

impl From<&Learnt> for DescribedLearnt {
    fn from(learnt: &Learnt) -> Self {
        let HistoryConfig {
            average,
            scope,
            per_server_name,
            zero_rtt,
            cap,
            raise_only_when_limited,
            lifetime,
        } = learnt.history;
        let (average, window, weight) = match average {
            Average::Mean => ("mean", None, None),
            Average::Window(samples) => ("window", Some(samples), None),
            Average::Ewma { weight } => ("ewma", None, Some(weight)),
        };
        Self {
            average,
            window,
            weight,
            scope: match scope {
                PathScope::Prefix { v4, v6 } => format!("prefix /{v4} /{v6}"),
                PathScope::Address => "address".to_owned(),
                PathScope::Global => "global".to_owned(),
            },
            per_server_name,
            zero_rtt: match zero_rtt {
                ZeroRtt::Carry => "carry",
                ZeroRtt::History => "history",
                ZeroRtt::Default => "default",
            },
            cap_bytes: cap,
            raise_only_when_limited,
            lifetime_s: (lifetime != Duration::MAX).then_some(lifetime.as_secs_f64()),
            careful: learnt.careful.map(|careful| DescribedCareful {
                max_jump_bytes: careful.max_jump,
                lifetime_s: careful.lifetime.as_secs_f64(),
                beta: careful.beta,
                tokens: careful.tokens,
            }),
        }
    }
}
