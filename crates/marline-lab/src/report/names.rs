//! Names and units of metrics, statistics and parameters in reports.

use marline_report::chart::{Axis, Unit};
use marline_report::units;

use crate::scenario::Value;
use crate::stats::{Interval, Statistic};

/// Names of metrics and parameters where their keys are not enough. The unit follows from the suffix of the
/// key.
const KNOWN: [(&str, &str); 50] = [
    (
        "background_after_mbps",
        "goodput of background flows, after the visit",
    ),
    (
        "background_before_mbps",
        "goodput of background flows, before the visit",
    ),
    (
        "background_during_loss_ratio",
        "packet loss of background flows, during the visit",
    ),
    (
        "background_during_mbps",
        "goodput of background flows, during the visit",
    ),
    ("background_goodput_mbps", "goodput of a background flow"),
    (
        "background_missing_bytes",
        "bytes that background flows lost to the visit",
    ),
    (
        "background_recovery_s",
        "time until background flows recover 90 % of their goodput",
    ),
    (
        "background_share",
        "share of all goodput that background flows have together",
    ),
    (
        "background_share_of_fair",
        "share of its fair rate that a background flow gets",
    ),
    ("bytes_received", "bytes received"),
    ("careful_jumps", "jumps"),
    ("careful_retreats", "retreats"),
    ("completion_s", "completion time"),
    ("content_kb", "content size"),
    ("first_byte_s", "time to first byte"),
    ("first_flight_loss_ratio", "packet loss of the first flight"),
    (
        "first_fluctuation_packets",
        "packets sent before the first fluctuation",
    ),
    ("first_fluctuation_s", "time of the first fluctuation"),
    (
        "first_fluctuation_window_bytes",
        "window at the first fluctuation",
    ),
    ("first_render_s", "time to first render"),
    ("fluctuations", "network fluctuations"),
    ("ideal_s", "time the links would allow"),
    ("iw_packets", "initial window in packets"),
    ("jain_index", "fairness (Jain)"),
    ("jain_index_5s", "fairness in spans of 5 s (Jain)"),
    (
        "jain_index_connections",
        "fairness among connections (Jain)",
    ),
    (
        "largest_connection_ratio",
        "share of the bytes on the connection with most",
    ),
    ("largest_window_bytes", "largest window"),
    ("last_byte_s", "time of the last byte"),
    ("latency_s", "transfer latency"),
    ("link.rtt", "round-trip time"),
    ("loss_ratio", "packet loss"),
    ("min_rtt_s", "smallest round-trip time"),
    ("page_load_max_s", "longest page load time"),
    ("page_load_mean_s", "mean page load time"),
    ("page_load_s", "page load time"),
    ("plt_s", "page load time"),
    ("rtt_median_ms", "median round-trip time"),
    ("rtt_ms", "round-trip time"),
    ("rtt_p99_ms", "99th percentile of round-trip times"),
    ("rtt_s", "round-trip time"),
    ("share", "share of all goodput"),
    (
        "smallest_background_goodput_mbps",
        "goodput of the slowest background flow",
    ),
    (
        "smallest_connection_goodput_mbps",
        "goodput of the slowest connection",
    ),
    (
        "streams_last_byte_max_s",
        "longest time until the last byte of a stream",
    ),
    (
        "streams_last_byte_mean_s",
        "mean time until the last byte of streams",
    ),
    ("streams_max_s", "longest time of a stream"),
    ("streams_mean_s", "mean time of streams"),
    ("utilization_ratio", "link utilization"),
    ("workload.objects", "objects"),
];

/// Suffixes of keys: the unit, and the factor to its base unit.
const ENDS: [(&str, Unit, f64); 15] = [
    ("_s", Unit::Seconds, 1.0),
    ("_ms", Unit::Seconds, 1e-3),
    ("_us", Unit::Seconds, 1e-6),
    ("_bytes", Unit::Bytes, 1.0),
    ("_kb", Unit::Bytes, 1e3),
    ("_mb", Unit::Bytes, 1e6),
    ("_bps", Unit::BitsPerSecond, 1.0),
    ("_kbps", Unit::BitsPerSecond, 1e3),
    ("_mbps", Unit::BitsPerSecond, 1e6),
    ("_gbps", Unit::BitsPerSecond, 1e9),
    ("_ratio", Unit::Share, 1.0),
    ("_of_fair", Unit::Share, 1.0),
    ("_share", Unit::Share, 1.0),
    ("share", Unit::Share, 1.0),
    ("_percent", Unit::Percent, 1.0),
];

/// If all values are above this share of the largest, the axis need not start at zero.
const FAR_FROM_ZERO: f64 = 0.25;
/// Margin around the values, as a share of their range.
const MARGIN: f64 = 0.03;
/// Texts of at most this many characters are not broken in a table.
const SHORT: usize = 16;

/// A quantity with its unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantity {
    /// Its name, without the unit.
    pub(super) name: String,
    pub(super) unit: Unit,
    /// Factor from a value of the metric to the base unit.
    factor: f64,
}

impl Quantity {
    /// The quantity of the metric or parameter `name`.
    pub(super) fn of(name: &str) -> Self {
        let end = ENDS.iter().find(|(end, ..)| name.ends_with(end));
        let (end, unit, factor) = end.copied().unwrap_or(("", Unit::Number, 1.0));
        let known = KNOWN.iter().find(|(known, _)| *known == name);
        let plain = || name[..name.len() - end.len()].replace(['_', '.'], " ");
        Self {
            name: known.map_or_else(plain, |(_, words)| (*words).to_owned()),
            unit,
            factor,
        }
    }

    /// The quantity of a `statistic` of the metric `name`.
    pub(super) fn of_statistic(name: &str, statistic: Statistic) -> Self {
        let quantity = Self::of(name);
        match statistic {
            Statistic::Cov => Self {
                unit: Unit::Number,
                factor: 1.0,
                ..quantity
            },
            _ => quantity,
        }
    }

    /// A quantity in base units.
    pub(super) fn plain(name: &str, unit: Unit) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            factor: 1.0,
        }
    }

    /// `value` in the base unit.
    pub(super) fn base(&self, value: f64) -> f64 {
        value * self.factor
    }

    /// `value` of the metric, with its unit.
    pub(super) fn text(&self, value: f64) -> String {
        unbroken(&self.unit.text(self.base(value)))
    }

    /// The text of a value that may be missing.
    pub(super) fn maybe(&self, value: Option<f64>) -> String {
        value.map_or_else(nothing, |value| self.text(value))
    }

    /// The text of an interval of the metric, or that there is none because nothing is random.
    pub(super) fn interval_unless(
        &self,
        deterministic: bool,
        interval: Option<Interval>,
    ) -> String {
        match deterministic {
            true => "deterministic".to_owned(),
            false => self.interval(interval),
        }
    }

    /// The text of an interval of the metric.
    pub(super) fn interval(&self, interval: Option<Interval>) -> String {
        interval.map_or_else(nothing, |[low, high]| {
            let (low, high) = (self.text(low), self.text(high));
            if low == high {
                return high;
            }
            // A common unit is written once.
            match (low.rsplit_once('\u{a0}'), high.rsplit_once('\u{a0}')) {
                (Some((number, unit)), Some((_, same))) if unit == same => {
                    format!("{number} to {high}")
                }
                _ => format!("{low} to {high}"),
            }
        })
    }

    /// An axis for values in the base unit.
    pub(super) fn axis(&self) -> Axis {
        Axis::new(self.name.as_str(), self.unit)
    }

    /// An axis for `values` that starts at zero only if one of them is near zero.
    pub(super) fn axis_around(&self, values: impl Iterator<Item = f64>) -> Axis {
        let Range { low, high } = range(values);
        let margin = (high - low) * MARGIN;
        match low > FAR_FROM_ZERO * high && margin > 0.0 {
            true => self.axis().spanning(low - margin, high + margin),
            false => self.axis(),
        }
    }

    /// The name with a capital letter.
    pub(super) fn title(&self) -> String {
        capitalized(&self.name)
    }
}

/// The range of some values.
pub(super) struct Range {
    /// The smallest; infinite if there are none.
    pub(super) low: f64,
    /// The largest; minus infinity if there are none.
    pub(super) high: f64,
}

/// The range of `values`.
pub(super) fn range(values: impl Iterator<Item = f64>) -> Range {
    let empty = Range {
        low: f64::INFINITY,
        high: f64::NEG_INFINITY,
    };
    values.fold(empty, |range, value| Range {
        low: range.low.min(value),
        high: range.high.max(value),
    })
}

/// The source of a published value; a short one is kept on one line.
pub(super) fn source(text: &str) -> String {
    match text.len() {
        0..=SHORT => unbroken(text),
        _ => text.to_owned(),
    }
}

/// Replaces spaces by non-breaking ones.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// The text of a missing value.
pub(super) fn nothing() -> String {
    "\u{2013}".to_owned()
}

/// `text` with a capital letter.
pub(super) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    first.into_iter().flatten().chain(letters).collect()
}

/// The name of a statistic. Variation is the standard deviation divided by the mean.
pub(super) const fn statistic(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Median => "median",
        Statistic::P95 => "95th percentile",
        Statistic::Mean => "mean",
        Statistic::Std => "standard deviation",
        Statistic::Cov => "variation",
        Statistic::Min => "smallest",
        Statistic::Max => "largest",
    }
}

/// The name of a statistic of a quantity, such as `median completion time`.
pub(super) fn of(statistic: Statistic, name: &str) -> String {
    let words = self::statistic(statistic);
    match statistic {
        Statistic::Median | Statistic::Mean | Statistic::Min | Statistic::Max => {
            format!("{words} {name}")
        }
        Statistic::P95 | Statistic::Std | Statistic::Cov => format!("{words} of {name}"),
    }
}

/// The name of a parameter: of a key of a scenario, or of a name that the scenario chose.
pub(super) fn parameter(key: &str) -> String {
    let quantity = Quantity::of(key);
    let words = quantity.name;
    if let Some(path) = words.strip_prefix("paths ") {
        return format!("path {path}");
    }
    let short = ["link ", "workload "]
        .iter()
        .find_map(|prefix| words.strip_prefix(prefix));
    short.unwrap_or(&words).to_owned()
}

/// The text of a parameter's value.
pub(super) fn value(key: &str, value: &Value) -> String {
    let quantity = Quantity::of(key);
    match value {
        Value::Number(number) if quantity.unit != Unit::Number => number
            .as_f64()
            .map_or_else(nothing, |number| quantity.text(number)),
        Value::String(text) => spaced(text),
        Value::Array(values) => {
            let values = values.iter().map(|member| self::value(key, member));
            values.collect::<Vec<_>>().join(", ")
        }
        other => plain(other),
    }
}

/// The text of a value, unchanged.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// `50ms` as `50 ms`; other names without underscores.
fn spaced(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let is_unit = !unit.is_empty() && unit.chars().all(|c| c.is_ascii_alphabetic() || c == '%');
    if number.parse::<f64>().is_err() || !is_unit {
        return text.replace('_', " ");
    }
    let unit = match unit {
        "bps" => "bit/s",
        "kbps" => "kbit/s",
        "mbps" => "Mbit/s",
        "gbps" => "Gbit/s",
        unit => unit,
    };
    format!("{number}\u{a0}{unit}")
}

/// The text of a time span of any length.
pub(super) fn span(seconds: f64) -> String {
    match seconds {
        x if x >= 7200.0 => format!("{} h", units::number(x / 3600.0)),
        x if x >= 120.0 => format!("{} min", units::number(x / 60.0)),
        x => units::seconds(x),
    }
}

#[cfg(test)]
mod tests;
