//! Lengths of time in flags.

use std::time::Duration;

use marline::settings::read_time;

/// Seconds of 30 years.
const LONGEST: f64 = 1e9;

/// A time in seconds, or with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let is_number = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    match text.parse::<f64>() {
        Ok(seconds) if is_number && seconds <= LONGEST => Ok(Duration::from_secs_f64(seconds)),
        Ok(_) if is_number => Err("it is longer than 30 years".to_owned()),
        _ => read_time(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_in_seconds() {
        for (text, milliseconds) in [
            ("0.2", 200),
            (".5", 500),
            ("1.", 1000),
            ("90", 90_000),
            ("0", 0),
            ("1.5s", 1500),
            ("20ms", 20),
        ] {
            assert_eq!(
                duration(text),
                Ok(Duration::from_millis(milliseconds)),
                "{text}"
            );
        }
        for text in [
            "",
            ".",
            "-1",
            "1e9",
            "inf",
            "nan",
            "1.2.3",
            "1e400",
            "soon",
            &"9".repeat(400),
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
