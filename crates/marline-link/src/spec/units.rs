//! Numbers with units.

use std::fmt;
use std::time::Duration;

use super::Problem;

/// Units and their size in the smallest unit, from the largest to the smallest.
type Units = &'static [(&'static str, u64)];

const RATES: Units = &[
    ("gbps", 1_000_000_000),
    ("mbps", 1_000_000),
    ("kbps", 1000),
    ("bps", 1),
];
const TIMES: Units = &[
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];
const SIZES: Units = &[
    ("MB", 1_000_000),
    ("kB", 1000),
    ("B", 1),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
];
/// Shares are stored in billionths.
const SHARES: Units = &[("%", 10_000_000)];

/// A share from 0 to 1, with a resolution of a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Share(u32);

impl Share {
    /// 0 %.
    pub const NONE: Self = Self(0);
    /// 100 %.
    pub const ALL: Self = Self(1_000_000_000);

    /// A share of `billionths`, at most [`Self::ALL`].
    pub const fn from_billionths(billionths: u32) -> Self {
        if billionths < Self::ALL.0 {
            Self(billionths)
        } else {
            Self::ALL
        }
    }

    /// The share as a number from 0 to 1.
    pub fn as_f64(self) -> f64 {
        f64::from(self.0) / f64::from(Self::ALL.0)
    }

    /// Whether the share is 0.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&show(u64::from(self.0), SHARES))
    }
}

pub(super) fn share(text: &str) -> Result<Share, Problem> {
    let billionths = parse(text, SHARES)?;
    match u32::try_from(billionths) {
        Ok(billionths) if billionths <= Share::ALL.0 => Ok(Share(billionths)),
        _ => Err(Problem::Above100 {
            value: text.to_owned(),
        }),
    }
}

pub(super) fn rate(text: &str) -> Result<u64, Problem> {
    let rate = parse(text, RATES)?;
    if rate > 1_000_000_000_000 {
        return Err(Problem::out_of_range(text, "at most 1000gbps"));
    }
    Ok(rate)
}

pub(super) fn show_rate(rate: u64) -> String {
    show(rate, RATES)
}

pub(super) fn time(text: &str) -> Result<Duration, Problem> {
    parse(text, TIMES).map(Duration::from_nanos)
}

pub(super) fn show_time(time: Duration) -> String {
    show(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), TIMES)
}

pub(super) fn size(text: &str) -> Result<u64, Problem> {
    parse(text, SIZES)
}

pub(super) fn show_size(bytes: u64) -> String {
    show(bytes, SIZES)
}

/// A number as text, and its unit, which may be empty.
pub(super) struct Quantity<'a> {
    pub(super) number: &'a str,
    pub(super) unit: &'a str,
}

/// Splits a quantity into its number and its unit.
pub(super) fn split(text: &str) -> Result<Quantity<'_>, Problem> {
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if number.is_empty() || number.parse::<f64>().is_err() {
        return Err(Problem::not_a_number(text));
    }
    Ok(Quantity {
        number,
        unit: unit.trim(),
    })
}

/// Parses a number with one of `units`, in the smallest unit, rounded.
fn parse(text: &str, units: Units) -> Result<u64, Problem> {
    let names = || units.iter().map(|unit| unit.0).collect::<Vec<_>>();
    let Quantity { number, unit } = split(text)?;
    if unit.is_empty() {
        return Err(Problem::UnitMissing {
            value: number.to_owned(),
            units: names(),
        });
    }
    let Some((_, scale)) = units.iter().find(|known| known.0 == unit) else {
        return Err(Problem::UnknownUnit {
            unit: unit.to_owned(),
            units: names(),
        });
    };
    scaled(number, *scale).ok_or_else(|| Problem::out_of_range(text, "too many digits"))
}

/// A decimal number times `scale`, computed exactly and rounded.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let divisor = 10_u128.checked_pow(fraction.len().try_into().ok()?)?;
    let digits = format!("{whole}{fraction}").parse::<u128>().ok()?;
    let product = digits.checked_mul(u128::from(scale))?;
    u64::try_from(product.checked_add(divisor / 2)? / divisor).ok()
}

/// Prints `value` in the largest decimal unit not above it, without loss of precision.
fn show(value: u64, units: Units) -> String {
    let decimal = || units.iter().filter(|unit| !unit.0.contains('i'));
    let Some((name, scale)) = decimal()
        .find(|unit| unit.1 <= value)
        .or_else(|| decimal().next_back())
    else {
        return value.to_string();
    };
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return format!("{whole}{name}");
    }
    let digits = scale.ilog10() as usize;
    let fraction = format!("{rest:0digits$}");
    format!("{whole}.{}{name}", fraction.trim_end_matches('0'))
}
