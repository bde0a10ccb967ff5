//! The first record of a log.

use std::time::Duration;

use marline_wire::{ConnectionId, Side};

use crate::Instant;
use crate::observe::json::Json;

/// The schemas of events, frames and values. Our own are declared in `docs/reference/qlog.cddl`.
const SCHEMAS: [&str; 4] = [
    "urn:ietf:params:qlog:events:quic-13",
    "https://github.com/marline/marline/112026/qlog/quic#extensions",
    "https://github.com/marline/marline/112026/qlog/marline",
    "https://github.com/marline/marline/112026/qlog/recovery",
];

/// The vantage point of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VantagePoint<'a> {
    /// Name of the program.
    pub name: &'a str,
    /// Role of this end.
    pub side: Side,
}

/// The parameters of a log that are known before the first event.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Title for humans.
    pub title: &'a str,
    /// Vantage point.
    pub vantage_point: VantagePoint<'a>,
    /// The client's first destination connection ID, equal in both ends' logs.
    pub original_destination_connection_id: ConnectionId,
    /// Reference time of the log.
    pub reference: Instant,
    /// Reference time on the wall clock, since 1970-01-01 UTC; `None` in virtual time.
    pub wall_clock: Option<Duration>,
}

impl Header<'_> {
    pub(super) fn write(&self, buf: &mut Vec<u8>) {
        buf.push(0x1e);
        Json(buf).item(|file| {
            file.str("file_schema", "urn:ietf:params:qlog:file:sequential");
            file.str("serialization_format", "application/qlog+json-seq");
            file.str("title", self.title);
            file.object("trace", |trace| {
                trace.object("common_fields", |common| {
                    common.hex("group_id", &self.original_destination_connection_id);
                    common.str("time_format", "relative_to_epoch");
                    common.object("reference_time", |reference| {
                        reference.str("clock_type", "monotonic");
                        reference.str("epoch", "unknown");
                        if let Some(since_1970) = self.wall_clock {
                            reference.str("wall_clock_time", &rfc3339(since_1970));
                        }
                    });
                });
                trace.object("vantage_point", |point| {
                    point.str("name", self.vantage_point.name);
                    point.str(
                        "type",
                        match self.vantage_point.side {
                            Side::Client => "client",
                            Side::Server => "server",
                        },
                    );
                });
                trace.array("event_schemas", |schemas| {
                    for schema in SCHEMAS {
                        schemas.string(schema);
                    }
                });
            });
        });
        buf.push(b'\n');
    }
}

/// A time in the format of RFC 3339, to the millisecond.
fn rfc3339(since_1970: Duration) -> String {
    let seconds = since_1970.as_secs();
    let Date { year, month, day } = Date::from_days(seconds / 86_400);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60,
        since_1970.subsec_millis()
    )
}

/// A date of the Gregorian calendar.
struct Date {
    year: u64,
    month: u64,
    day: u64,
}

impl Date {
    /// The date `days` after 1970-01-01. Years begin in March in the calculation, so leap days come last.
    const fn from_days(days: u64) -> Self {
        /// Number of days in 400 years.
        const ERA: u64 = 146_097;
        let days = days + 719_468;
        let (era, day) = (days / ERA, days % ERA);
        let year = (day - day / 1_460 + day / 36_524 - day / (ERA - 1)) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, next_year) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        Self {
            year: era * 400 + year + next_year,
            month,
            day,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_clock_times_are_calendar_times() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_767_225_600, "2026-01-01T00:00:00.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), text);
        }
        assert_eq!(
            rfc3339(Duration::from_millis(1_553_986_553_572)),
            "2019-03-30T22:55:53.572Z"
        );
    }
}
