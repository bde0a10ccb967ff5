//! How a bundle is coordinated, as scenarios and results say it.

use marline::coordination::bundle::{BundleConfig, BundleScope, Coalesce};
use serde::Serialize;

use super::document::{Item, Node, Table};

/// Makes what switches start from.
type Base = fn() -> BundleConfig;

/// What switches start from, by name.
pub(super) const BASES: [(&str, Base); 2] = [
    ("published", BundleConfig::published),
    ("default", BundleConfig::default),
];

/// Who takes part, by name.
pub(super) const SCOPES: [(&str, BundleScope); 2] = [
    (scope_name(BundleScope::All), BundleScope::All),
    (scope_name(BundleScope::Active), BundleScope::Active),
];

/// Which events count as one, by name.
pub(super) const COALESCE: [(&str, Coalesce); 3] = [
    (coalesce_name(Coalesce::Never), Coalesce::Never),
    (coalesce_name(Coalesce::Member), Coalesce::Member),
    (coalesce_name(Coalesce::Bundle), Coalesce::Bundle),
];

/// What is not set but measured while it runs.
pub(super) const MEASURED: &str = "measured";

/// What never happens.
pub(super) const NEVER: &str = "never";

/// Makes a table with `base` of `bundle = "published"`, so that single switches can be replaced.
pub(super) fn take_apart(node: Node) -> Node {
    let place = node.place.clone();
    match node.item {
        Item::Text(_) => Node {
            place,
            item: Item::Table(Table(vec![("base".to_owned(), node)])),
        },
        _ => node,
    }
}

/// Every switch as it comes out.
#[derive(Serialize)]
pub(super) struct DescribedBundle {
    split_initial_window: bool,
    sync_windows: bool,
    sync_state: bool,
    backoff: NumberOr<f64>,
    slow_start_growth: NumberOr<f64>,
    avoidance_growth: f64,
    affected_growth: f64,
    imbalance: f64,
    rate_imbalance: f64,
    backoff_on_delay: bool,
    scope: &'static str,
    coalesce: &'static str,
    floor_packets: u64,
    fair: bool,
    connections: u64,
    corroborated_by: NumberOr<usize>,
    match_addresses: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NumberOr<T> {
    Number(T),
    Word(&'static str),
}

impl<T> NumberOr<T> {
    fn new(number: Option<T>, word: &'static str) -> Self {
        number.map_or(Self::Word(word), Self::Number)
    }
}

impl From<&BundleConfig> for DescribedBundle {
    fn from(config: &BundleConfig) -> Self {
        let BundleConfig {
            split_initial_window,
            sync_windows,
            sync_state,
            backoff,
            slow_start_growth,
            avoidance_growth,
            affected_growth,
            imbalance,
            rate_imbalance,
            backoff_on_delay,
            scope,
            coalesce,
            floor_packets,
            fair,
            connections,
            corroborated_by,
            match_addresses,
        } = *config;
        Self {
            split_initial_window,
            sync_windows,
            sync_state,
            backoff: NumberOr::new(backoff, MEASURED),
            slow_start_growth: NumberOr::new(slow_start_growth, MEASURED),
            avoidance_growth,
            affected_growth,
            imbalance,
            rate_imbalance,
            backoff_on_delay,
            scope: scope_name(scope),
            coalesce: coalesce_name(coalesce),
            floor_packets,
            fair,
            connections,
            corroborated_by: NumberOr::new(corroborated_by, NEVER),
            match_addresses,
        }
    }
}

const fn scope_name(scope: BundleScope) -> &'static str {
    match scope {
        BundleScope::All => "all",
        BundleScope::Active => "active",
    }
}

const fn coalesce_name(coalesce: Coalesce) -> &'static str {
    match coalesce {
        Coalesce::Never => "never",
        Coalesce::Member => "member",
        Coalesce::Bundle => "bundle",
    }
}
