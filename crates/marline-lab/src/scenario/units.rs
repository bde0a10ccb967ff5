//! Sizes, times, rates and shares, each with its unit.

use std::time::Duration;

type Scale = [(&'static str, f64)];

const SIZES: &Scale = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];
/// Nanoseconds.
const TIMES: &Scale = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("min", 60e9),
];
const RATES: &Scale = &[("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9)];

/// Larger values of any unit are mistakes: petabytes, years.
const LARGEST: f64 = 1e17;

/// Bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let bytes = quantity(text, "size", SIZES)?;
    if bytes.fract() == 0.0 {
        Ok(bytes as u64)
    } else {
        Err(format!("\"{text}\" is not a whole number of bytes"))
    }
}

/// A length of time.
pub(super) fn time(text: &str) -> Result<Duration, String> {
    Ok(Duration::from_nanos(
        quantity(text, "time", TIMES)?.round() as u64
    ))
}

/// Bits per second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    Ok(quantity(text, "rate", RATES)?.round() as u64)
}

/// A number and what follows it.
pub(super) fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | '_')))
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number: f64 = number.replace('_', "").parse().ok()?;
    Some((number, unit.trim()))
}

fn quantity(text: &str, what: &str, units: &Scale) -> Result<f64, String> {
    let known = || {
        let names: Vec<_> = units.iter().map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let Some((number, unit)) = split(text) else {
        return Err(format!(
            "\"{text}\" is not a {what}; write a number and one of {}",
            known()
        ));
    };
    if unit.is_empty() {
        return Err(format!("\"{text}\" has no unit; append one of {}", known()));
    }
    let Some((_, scale)) = units.iter().find(|(name, _)| *name == unit).or_else(|| {
        units
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
    }) else {
        return Err(format!(
            "\"{text}\" has an unknown unit \"{unit}\"; use one of {}",
            known()
        ));
    };
    let value = number * scale;
    if (0.0..=LARGEST).contains(&value) {
        Ok(value)
    } else {
        Err(format!("\"{text}\" is out of range for a {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale() {
        assert_eq!(size("500kB"), Ok(500_000));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("2_400 kB"), Ok(2_400_000));
        assert_eq!(time("2.5ms"), Ok(Duration::from_micros(2500)));
        assert_eq!(time("1min"), Ok(Duration::from_secs(60)));
        assert_eq!(rate("65.9mbps"), Ok(65_900_000));
        assert_eq!(rate("1Gbps"), Ok(1_000_000_000));
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for (result, words) in [
            (size("500"), "has no unit; append one of B, kB"),
            (size("kB"), "is not a size"),
            (size("5kg"), "unknown unit \"kg\"; use one of B"),
            (size("-5kB"), "out of range"),
            (size("0.3B"), "not a whole number of bytes"),
            (rate("99999999999gbps"), "out of range"),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
