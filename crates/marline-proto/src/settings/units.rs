//! Sizes and times with their units.

use std::time::Duration;

use super::quote;

type Scale = [(&'static str, u64)];

/// Bytes, the largest units first.
const SIZES: &Scale = &[
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1000),
    ("B", 1),
];

/// Nanoseconds, the largest units first.
const TIMES: &Scale = &[
    ("d", 86_400_000_000_000),
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1000),
    ("ns", 1),
];

/// Larger values of any unit are mistakes: petabytes, years.
const LARGEST: f64 = 1e17;

/// Reads a number of bytes, as `64kB` or `1.5MiB`.
///
/// # Errors
/// It is no size; the message says what is.
pub fn read_bytes(text: &str) -> Result<u64, String> {
    let bytes = quantity(text, "size", SIZES)?;
    if bytes.fract() == 0.0 {
        Ok(bytes as u64)
    } else {
        Err(format!(
            "\"{}\" is not a whole number of bytes",
            quote(text)
        ))
    }
}

/// Reads a length of time, as `30s` or `2.5ms`.
///
/// # Errors
/// It is no time; the message says what is.
pub fn read_time(text: &str) -> Result<Duration, String> {
    let nanoseconds = quantity(text, "time", TIMES)?.round();
    Ok(Duration::from_nanos(nanoseconds as u64))
}

/// Writes bytes in the largest unit of which they are a whole number.
pub fn write_bytes(bytes: u64) -> String {
    whole(bytes, SIZES)
}

/// Writes a time in the largest unit of which it is a whole number.
pub fn write_time(time: Duration) -> String {
    match u64::try_from(time.as_nanos()) {
        Ok(0) => "0s".to_owned(),
        Ok(nanoseconds) => whole(nanoseconds, TIMES),
        Err(_) => format!("{}s", time.as_secs()),
    }
}

fn whole(value: u64, units: &Scale) -> String {
    let fitting = units
        .iter()
        .find(|(_, scale)| value.is_multiple_of(*scale) && value > 0);
    let (unit, scale) = fitting.copied().unwrap_or(units[units.len() - 1]);
    format!("{}{unit}", value / scale)
}

/// A number and the unit that follows it; `None` if it does not begin with a number.
pub fn split_unit(text: &str) -> Option<(f64, &str)> {
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
        let names: Vec<_> = units.iter().rev().map(|(name, _)| *name).collect();
        names.join(", ")
    };
    let split = split_unit(text);
    let text = quote(text);
    let Some((number, unit)) = split else {
        return Err(format!(
            "\"{text}\" is not a {what}; write a number and one of {}",
            known()
        ));
    };
    if unit.is_empty() {
        return Err(format!("\"{text}\" has no unit; append one of {}", known()));
    }
    let of_name = |equal: fn(&str, &str) -> bool| units.iter().find(|(name, _)| equal(name, unit));
    let Some((_, scale)) = of_name(|a, b| a == b).or_else(|| of_name(str::eq_ignore_ascii_case))
    else {
        return Err(format!(
            "\"{text}\" has an unknown unit \"{}\"; use one of {}",
            quote(unit),
            known()
        ));
    };
    let value = number * *scale as f64;
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
    fn units_scale_their_numbers() {
        assert_eq!(read_bytes("500kB"), Ok(500_000));
        assert_eq!(read_bytes("1.5 KiB"), Ok(1536));
        assert_eq!(read_bytes("2_400 kB"), Ok(2_400_000));
        assert_eq!(read_bytes("5kib"), Ok(5120));
        assert_eq!(read_time("2.5ms"), Ok(Duration::from_micros(2500)));
        assert_eq!(read_time("1min"), Ok(Duration::from_secs(60)));
        assert_eq!(read_time("7d"), Ok(Duration::from_secs(7 * 86_400)));
    }

    #[test]
    fn text_that_is_no_quantity_is_refused() {
        for (result, words) in [
            (read_bytes("500"), "has no unit; append one of B, kB"),
            (read_bytes("kB"), "is not a size"),
            (read_bytes("5kg"), "unknown unit \"kg\"; use one of B"),
            (read_bytes("-5kB"), "out of range"),
            (read_bytes("0.3B"), "not a whole number of bytes"),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn written_quantities_parse_to_the_same_value() {
        for bytes in [
            1,
            999,
            1000,
            1024,
            1200,
            240_000,
            8 << 20,
            24 << 20,
            3 << 30,
        ] {
            assert_eq!(read_bytes(&write_bytes(bytes)), Ok(bytes), "{bytes}");
        }
        assert_eq!(write_bytes(8 << 20), "8MiB");
        for time in ["1ns", "333ms", "90s", "1min", "36h", "7d"] {
            let read = read_time(time).unwrap();
            assert_eq!(read_time(&write_time(read)), Ok(read), "{time}");
        }
        assert_eq!(write_time(Duration::from_secs(3600)), "1h");
        assert_eq!(write_time(Duration::ZERO), "0s");
    }
}
