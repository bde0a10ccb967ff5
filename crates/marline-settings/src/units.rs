//! Times, sizes, rates and shares: one grammar for all of them.
//!
//! A quantity is a decimal number, in whose digits `_` may stand, and a unit: `2.5ms`, `1_500 kB`, `7mbps`, `0.1%`. The case of
//! a unit does not matter, unless it leaves open whether bits or bytes are meant: `1Mb` and `1MBps` are refused. Values are
//! computed exactly and rounded to the smallest unit; what is written is read back the same.

use std::fmt;
use std::time::Duration;

use crate::names::{advice, or, quote};

/// The units of one kind of quantity.
struct Scale {
    what: &'static str,
    /// The units, largest first.
    units: &'static [Unit],
    /// Bits or bytes, if it counts one of them.
    counts: Option<Counted>,
}

/// The things that a size or a rate counts.
#[derive(Clone, Copy)]
enum Counted {
    Bits,
    Bytes,
}

impl Counted {
    /// The letter that stands for the other one, in other programs as well.
    const fn mistaken(self) -> char {
        match self {
            Self::Bits => 'B',
            Self::Bytes => 'b',
        }
    }
}

struct Unit {
    name: &'static str,
    /// The unit in terms of the smallest one.
    scale: u64,
    /// Whether only whole multiples of it are written.
    is_whole: bool,
}

const fn whole(name: &'static str, scale: u64) -> Unit {
    Unit {
        name,
        scale,
        is_whole: true,
    }
}

const fn decimal(name: &'static str, scale: u64) -> Unit {
    Unit {
        name,
        scale,
        is_whole: false,
    }
}

/// Sizes, in bytes.
const SIZE: Scale = Scale {
    what: "size",
    units: &[
        whole("GiB", 1 << 30),
        whole("GB", 1_000_000_000),
        whole("MiB", 1 << 20),
        whole("MB", 1_000_000),
        whole("KiB", 1 << 10),
        whole("kB", 1000),
        whole("B", 1),
    ],
    counts: Some(Counted::Bytes),
};

/// Times, in nanoseconds.
const TIME: Scale = Scale {
    what: "time",
    units: &[
        whole("d", 86_400_000_000_000),
        whole("h", 3_600_000_000_000),
        whole("min", 60_000_000_000),
        decimal("s", 1_000_000_000),
        decimal("ms", 1_000_000),
        decimal("us", 1000),
        decimal("ns", 1),
    ],
    counts: None,
};

/// Rates, in bits per second.
const RATE: Scale = Scale {
    what: "rate",
    units: &[
        decimal("gbps", 1_000_000_000),
        decimal("mbps", 1_000_000),
        decimal("kbps", 1000),
        decimal("bps", 1),
    ],
    counts: Some(Counted::Bits),
};

/// Shares, in billionths.
const SHARE: Scale = Scale {
    what: "share",
    units: &[decimal("%", 10_000_000)],
    counts: None,
};

/// Largest plausible value in the smallest unit: petabytes, years.
const LARGEST: u64 = 100_000_000_000_000_000;

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

/// The share in percent.
impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&SHARE.write(self.0.into()))
    }
}

/// Reads a number of bytes, as `64kB` or `1.5MiB`.
///
/// # Errors
/// It is not a size; the message names what is.
pub fn read_bytes(text: &str) -> Result<u64, String> {
    SIZE.read(text)
}

/// Reads a length of time, as `30s` or `2.5ms`.
///
/// # Errors
/// It is not a time; the message names what is.
pub fn read_time(text: &str) -> Result<Duration, String> {
    TIME.read(text).map(Duration::from_nanos)
}

/// Reads a rate in bits per second, as `7mbps`.
///
/// # Errors
/// It is not a rate; the message names what is.
pub fn read_rate(text: &str) -> Result<u64, String> {
    RATE.read(text)
}

/// Reads a share, as `0.5%`.
///
/// # Errors
/// It is not a share, or above 100 %.
pub fn read_share(text: &str) -> Result<Share, String> {
    let share = u32::try_from(SHARE.read(text)?).ok().map(Share);
    share
        .filter(|share| *share <= Share::ALL)
        .ok_or_else(|| format!("\"{}\" is above 100%", quote(text)))
}

/// Writes bytes in the largest unit of which they are a whole number.
pub fn write_bytes(bytes: u64) -> String {
    SIZE.write(bytes)
}

/// Writes a time, as `1min` or `2.5ms`.
pub fn write_time(time: Duration) -> String {
    match u64::try_from(time.as_nanos()) {
        Ok(0) => "0s".to_owned(),
        Ok(nanoseconds) => TIME.write(nanoseconds),
        Err(_) => format!("{}s", time.as_secs()),
    }
}

/// Writes bits per second, as `7.5mbps`.
pub fn write_rate(rate: u64) -> String {
    RATE.write(rate)
}

/// The number and the unit of a quantity in any unit; `None` if it does not begin with a number.
pub fn split_unit(text: &str) -> Option<(f64, &str)> {
    let (number, unit) = split(text)?;
    Some((number.replace('_', "").parse().ok()?, unit))
}

/// As [`split_unit`], with the number as written.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    Decimal::read(number)?;
    Some((number, unit.trim()))
}

/// The one of `units` that equals `unit`, ignoring case.
pub fn find_unit<'a>(unit: &str, units: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut units = units.into_iter();
    units.find(|name| name.eq_ignore_ascii_case(unit))
}

/// The message for `text`, a `what` with an unknown unit; `units` are the known ones.
pub fn refused_unit<'a>(
    text: &str,
    what: &str,
    units: impl IntoIterator<Item = &'a str>,
) -> String {
    let units: Vec<_> = units.into_iter().collect();
    let text = text.trim();
    match split(text) {
        None => format!(
            "\"{}\" is not a {what}; write a number and one of {}",
            quote(text),
            units.join(", ")
        ),
        Some((number, "")) => {
            let number = quote(number);
            let with: Vec<_> = units.iter().map(|unit| format!("{number}{unit}")).collect();
            let with: Vec<_> = with.iter().map(String::as_str).collect();
            format!("\"{number}\" has no unit; write {}", or(&with))
        }
        Some((_, unit)) => format!(
            "\"{}\" has an unknown unit \"{}\"; {}",
            quote(text),
            quote(unit),
            match unit {
                // Of minutes, and close to milliseconds.
                "m" if units.contains(&"min") => "write min for minutes, or ms".to_owned(),
                _ => advice(unit, units),
            }
        ),
    }
}

impl Scale {
    /// The value of `text` in the smallest unit, rounded.
    fn read(&self, text: &str) -> Result<u64, String> {
        let names = || self.units.iter().rev().map(|unit| unit.name);
        let unit = split(text).and_then(|(number, written)| {
            let name = find_unit(written, names())?;
            let unit = self.units.iter().find(|unit| unit.name == name)?;
            Some((Decimal::read(number)?, written, unit))
        });
        let Some((number, written, unit)) = unit else {
            return Err(refused_unit(text, self.what, names()));
        };
        let value = number.times(unit.scale).filter(|value| *value <= LARGEST);
        let value = value
            .ok_or_else(|| format!("\"{}\" is out of range for a {}", quote(text), self.what))?;
        match self.counts {
            Some(counted) if written.contains(counted.mistaken()) => {
                Err(self.ambiguous(text, value, counted))
            }
            _ => Ok(value),
        }
    }

    /// The message for `text`, which is `value` if its unit is of what this counts.
    fn ambiguous(&self, text: &str, value: u64, counted: Counted) -> String {
        let (own, other, otherwise) = match counted {
            Counted::Bits => ("bits", "bytes", value.saturating_mul(8)),
            Counted::Bytes => ("bytes", "bits", value.div_ceil(8)),
        };
        format!(
            "\"{}\" can be bits or bytes; write {} for {own}, or {} for {other}",
            quote(text),
            self.write(value),
            self.write(otherwise)
        )
    }

    /// `value` in the largest unit that suits, without loss of precision.
    fn write(&self, value: u64) -> String {
        let suits = |unit: &&Unit| {
            value >= unit.scale && (!unit.is_whole || value.is_multiple_of(unit.scale))
        };
        let unit = self.units.iter().find(suits);
        let Some(unit) = unit.or_else(|| self.units.last()) else {
            return value.to_string();
        };
        let (whole, rest) = (value / unit.scale, value % unit.scale);
        if rest == 0 {
            return format!("{whole}{}", unit.name);
        }
        let digits = unit.scale.ilog10() as usize;
        let fraction = format!("{rest:0digits$}");
        format!("{whole}.{}{}", fraction.trim_end_matches('0'), unit.name)
    }
}

/// A decimal number, without loss of precision.
struct Decimal {
    digits: u128,
    /// The number of digits after the decimal point.
    decimals: u32,
    is_negative: bool,
}

impl Decimal {
    /// No value in range is rounded differently with more.
    const DECIMALS: usize = 20;

    fn read(text: &str) -> Option<Self> {
        let is_negative = text.starts_with('-');
        let text = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let [whole, mut fraction] = [whole, fraction].map(|digits| digits.replace('_', ""));
        let is_number = !(whole.is_empty() && fraction.is_empty());
        let mut digits = whole.bytes().chain(fraction.bytes());
        if !is_number || !digits.all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        fraction.truncate(Self::DECIMALS);
        Some(Self {
            // More digits are out of any range.
            digits: [whole, fraction.clone()]
                .concat()
                .parse()
                .unwrap_or(u128::MAX),
            decimals: fraction.len() as u32,
            is_negative,
        })
    }

    /// The product, rounded; `None` if it is negative or has too many digits.
    fn times(&self, scale: u64) -> Option<u64> {
        let divisor = 10_u128.pow(self.decimals);
        let product = self.digits.checked_mul(scale.into())?;
        let rounded = product.checked_add(divisor / 2)? / divisor;
        let is_in_range = !self.is_negative || self.digits == 0;
        u64::try_from(rounded).ok().filter(|_| is_in_range)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn units_scale_their_numbers() {
        for (text, bytes) in [
            ("500kB", 500_000),
            ("1.5 KiB", 1536),
            ("2_400 kB", 2_400_000),
            ("5KIB", 5120),
            ("1GB", 1_000_000_000),
            ("+.5kB", 500),
            ("7.B", 7),
            ("-0B", 0),
        ] {
            assert_eq!(read_bytes(text), Ok(bytes), "{text}");
        }
        assert_eq!(read_time("2.5ms"), Ok(Duration::from_micros(2500)));
        assert_eq!(read_time("1min"), Ok(Duration::from_secs(60)));
        assert_eq!(read_time("7d"), Ok(Duration::from_secs(7 * 86_400)));
        assert_eq!(read_rate("65.9mbps"), Ok(65_900_000));
        assert_eq!(read_rate("1Gbps"), Ok(1_000_000_000));
        assert_eq!(read_share("0.0001%"), Ok(Share::from_billionths(1000)));
        assert_eq!(read_share("100%"), Ok(Share::ALL));
    }

    #[test]
    fn text_that_is_no_quantity_is_refused_with_what_to_write() {
        let time = |text| read_time(text).map(|time| time.as_secs());
        let share = |text| read_share(text).map(|_| 0);
        for (result, words) in [
            (read_bytes("500"), "\"500\" has no unit; write 500B, 500kB,"),
            (
                read_bytes("kB"),
                "\"kB\" is not a size; write a number and one of B, kB, ",
            ),
            (
                read_bytes("5kg"),
                "\"5kg\" has an unknown unit \"kg\"; did you mean kB? known: B, kB",
            ),
            (read_bytes("-5kB"), "\"-5kB\" is out of range for a size"),
            (
                read_bytes("1Mb"),
                "\"1Mb\" can be bits or bytes; write 1MB for bytes, or 125kB for bits",
            ),
            (
                read_bytes("5kib"),
                "\"5kib\" can be bits or bytes; write 5KiB for bytes, or 640B for bits",
            ),
            (
                read_bytes("0.5 gb"),
                "write 500MB for bytes, or 62500kB for bits",
            ),
            (read_bytes("8b"), "write 8B for bytes, or 1B for bits"),
            (
                read_rate("5MBps"),
                "\"5MBps\" can be bits or bytes; write 5mbps for bits, or 40mbps for bytes",
            ),
            (
                read_rate("1GBPS"),
                "write 1gbps for bits, or 8gbps for bytes",
            ),
            (read_bytes("1.2.3kB"), "is not a size"),
            (read_bytes(""), "\"\" is not a size"),
            (time("5"), "write 5ns, 5us, 5ms, 5s, 5min, 5h or 5d"),
            (
                time("5m"),
                "\"5m\" has an unknown unit \"m\"; write min for minutes, or ms",
            ),
            (time("9999999999d"), "out of range for a time"),
            (time("1-2s"), "is not a time"),
            (read_rate("99999999999gbps"), "out of range for a rate"),
            (share("0.02"), "write 0.02%"),
            (share("101%"), "\"101%\" is above 100%"),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let long = "9".repeat(1000);
        assert!(read_bytes(&format!("{long}.{long}B")).is_err());
        assert_eq!(read_bytes(&format!("0.{long}B")), Ok(1));
    }

    #[test]
    fn quantities_are_written_in_units_that_suit_them() {
        for (written, expected) in [
            (write_bytes(8 << 20), "8MiB"),
            (write_bytes(1400), "1400B"),
            (write_bytes(0), "0B"),
            (write_time(Duration::from_secs(3600)), "1h"),
            (write_time(Duration::from_secs(90)), "90s"),
            (write_time(Duration::from_micros(21_200)), "21.2ms"),
            (write_time(Duration::ZERO), "0s"),
            (write_rate(65_900_000), "65.9mbps"),
            (Share::from_billionths(900_000).to_string(), "0.09%"),
        ] {
            assert_eq!(written, expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_back(value in 0..=LARGEST, whole in 0..100_000_u64, unit in 0..7_usize) {
            for value in [value, whole, whole * SIZE.units[unit].scale % LARGEST, whole * TIME.units[unit].scale % LARGEST] {
                prop_assert_eq!(read_bytes(&write_bytes(value)), Ok(value));
                prop_assert_eq!(read_rate(&write_rate(value)), Ok(value));
                let time = Duration::from_nanos(value);
                prop_assert_eq!(read_time(&write_time(time)), Ok(time));
                let share = Share::from_billionths(value as u32);
                prop_assert_eq!(read_share(&share.to_string()), Ok(share));
            }
        }
    }
}
