//! Formatting of numbers for human readers.

/// Numbers from here on are written with an exponent.
const UNREADABLE: f64 = 1e15;

/// A number with about three significant digits, and groups of thousands. A number that is not finite is
/// a dash.
pub fn number(value: f64) -> String {
    if let Some(text) = odd(value) {
        return text;
    }
    let decimals = decimals(value);
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut out = grouped(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// A number with as many decimals as [`number`] gives `largest`, so that numbers align.
pub fn aligned(value: f64, largest: f64) -> String {
    if let Some(text) = odd(value) {
        return text;
    }
    let decimals = decimals(largest);
    let text = format!("{value:.decimals$}");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = grouped(whole);
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// The text of numbers that are not finite or need an exponent.
fn odd(value: f64) -> Option<String> {
    if !value.is_finite() {
        Some("\u{2013}".to_owned())
    } else if value.abs() >= UNREADABLE {
        Some(format!("{value:.2e}").replace('-', "\u{2212}"))
    } else {
        None
    }
}

fn decimals(value: f64) -> usize {
    match value.abs() {
        x if x >= 100.0 || x == 0.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    }
}

/// Digits in groups of three, separated by narrow no-break spaces.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits
        .strip_prefix('-')
        .map_or(("", digits), |rest| ("\u{2212}", rest));
    let mut out = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// A count.
pub fn count(value: u64) -> String {
    grouped(&value.to_string())
}

/// A count with its noun, as `1 packet` and `2 packets`; `one` is the singular.
pub fn counted(value: u64, one: &str) -> String {
    match value {
        1 => format!("1 {one}"),
        _ => format!("{value} {one}s"),
    }
}

/// A duration in a suitable unit.
pub fn seconds(value: f64) -> String {
    match value.abs() {
        0.0 => "0 s".to_owned(),
        x if x < 1e-3 => format!("{} µs", number(value * 1e6)),
        x if x < 1.0 => format!("{} ms", number(value * 1e3)),
        _ => format!("{} s", number(value)),
    }
}

/// Bytes with a suitable decimal prefix.
pub fn bytes(value: f64) -> String {
    scaled(value, "B")
}

/// Bits per second with a suitable decimal prefix.
pub fn bit_rate(bits_per_second: f64) -> String {
    scaled(bits_per_second, "bit/s")
}

fn scaled(value: f64, unit: &str) -> String {
    let Prefix { factor, symbol } = prefix(value);
    format!("{} {symbol}{unit}", number(value / factor))
}

/// A decimal prefix.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Prefix {
    pub(crate) factor: f64,
    pub(crate) symbol: &'static str,
}

/// The decimal prefix that brings `value` between 1 and 1000.
pub(crate) fn prefix(value: f64) -> Prefix {
    let of = |factor, symbol| Prefix { factor, symbol };
    match value.abs() {
        x if x >= 1e9 => of(1e9, "G"),
        x if x >= 1e6 => of(1e6, "M"),
        x if x >= 1e3 => of(1e3, "k"),
        _ => of(1.0, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_units() {
        assert_eq!(number(1_234_567.8), "1\u{202f}234\u{202f}568");
        assert_eq!(number(-1234.0), "\u{2212}1\u{202f}234");
        assert_eq!(number(0.05), "0.05");
        assert_eq!(number(-1.5e300), "\u{2212}1.50e300");
        assert_eq!(number(f64::NAN), "\u{2013}");
        assert_eq!(aligned(3.0, 27.4), "3.0");
        assert_eq!(aligned(-1234.56, 4000.0), "\u{2212}1\u{202f}235");
        assert_eq!(seconds(0.0123), "12.3 ms");
        assert_eq!(seconds(12.0), "12 s");
        assert_eq!(bytes(1500.0), "1.5 kB");
        assert_eq!(bit_rate(7_000_000.0), "7 Mbit/s");
        assert_eq!(count(999), "999");
    }
}
