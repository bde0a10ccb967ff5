//! Rates with units.

use marline::settings::{quote, split_unit};

const RATES: [(&str, f64); 4] = [("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9)];

/// Larger rates are taken for mistakes.
const LARGEST: f64 = 1e17;

/// Bits per second.
pub(super) fn rate(text: &str) -> Result<u64, String> {
    let known = RATES.map(|(name, _)| name).join(", ");
    let split = split_unit(text);
    let text = quote(text);
    let Some((number, unit)) = split else {
        return Err(format!(
            "\"{text}\" is not a rate; write a number and one of {known}"
        ));
    };
    if unit.is_empty() {
        return Err(format!("\"{text}\" has no unit; append one of {known}"));
    }
    let mut rates = RATES.iter();
    let Some((_, scale)) = rates.find(|(name, _)| name.eq_ignore_ascii_case(unit)) else {
        return Err(format!(
            "\"{text}\" has an unknown unit \"{}\"; use one of {known}",
            quote(unit)
        ));
    };
    let value = number * scale;
    if (0.0..=LARGEST).contains(&value) {
        Ok(value.round() as u64)
    } else {
        Err(format!("\"{text}\" is out of range for a rate"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_scale() {
        assert_eq!(rate("65.9mbps"), Ok(65_900_000));
        assert_eq!(rate("1Gbps"), Ok(1_000_000_000));
    }

    #[test]
    fn invalid_rates_are_refused() {
        for (text, words) in [
            ("500", "has no unit; append one of bps"),
            ("mbps", "is not a rate"),
            ("5kg", "unknown unit \"kg\"; use one of bps"),
            ("99999999999gbps", "out of range"),
        ] {
            let error = rate(text).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
