//! Dates in files of curl: `"20261231 23:59:59"`, in UTC.

use std::fmt;
use std::time::Duration;

use time::OffsetDateTime;
use time::{Date as Day, Month, PrimitiveDateTime, Time};

/// The end of what dates can express: the year 10000.
const END_S: u64 = 253_402_300_799;

/// A time since 1970, in whole seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date(pub(super) Duration);

impl Date {
    /// Reads a date with or without quotes; `unlimited` is the last one.
    pub(super) fn read(text: &str) -> Option<Self> {
        let text = text.trim_matches('"');
        if text == "unlimited" {
            return Some(Self(Duration::from_secs(END_S)));
        }
        let (day, time) = text.split_once(' ')?;
        let number = |text: &str, from: usize, to: usize| text.get(from..to)?.parse::<u16>().ok();
        let part = |text, from| u8::try_from(number(text, from, from + 2)?).ok();
        let month = Month::try_from(part(day, 4)?).ok()?;
        let day = Day::from_calendar_date(number(day, 0, 4)?.into(), month, part(day, 6)?).ok()?;
        let time = Time::from_hms(part(time, 0)?, part(time, 3)?, part(time, 6)?).ok()?;
        let seconds = PrimitiveDateTime::new(day, time)
            .assume_utc()
            .unix_timestamp();
        Some(Self(Duration::from_secs(seconds.try_into().ok()?)))
    }
}

/// With quotes.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs().min(END_S);
        let date = OffsetDateTime::from_unix_timestamp(seconds as i64).map_err(|_| fmt::Error)?;
        let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
        let (hour, minute, second) = (date.hour(), date.minute(), date.second());
        write!(
            f,
            "\"{year:04}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}\""
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        for text in ["\"20261231 23:59:59\"", "\"19700101 00:00:00\""] {
            assert_eq!(Date::read(text).unwrap().to_string(), text);
        }
        assert!(Date::read("unlimited").is_some());
        for wrong in ["", "x", "20261331 00:00:00", "2026 00:00:00", "20261231"] {
            assert_eq!(Date::read(wrong), None, "{wrong}");
        }
    }
}
