//! Priorities of requests (RFC 9218).

use std::fmt;

use http::{Method, Request};

/// The priority of a response (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// 0 (most urgent) to 7.
    pub urgency: u8,
    /// Whether the client can use parts of the response.
    pub incremental: bool,
}

impl Default for Priority {
    fn default() -> Self {
        Self {
            urgency: 3,
            incremental: false,
        }
    }
}

impl Priority {
    /// The priority of a request. A tunnel is incremental unless its field says otherwise: both ends use each part of it, and one
    /// that is read without end would otherwise keep others of its urgency from the connection.
    pub fn of<T>(request: &Request<T>) -> Self {
        let mut found = Self {
            incremental: *request.method() == Method::CONNECT,
            ..Self::default()
        };
        for value in request.headers().get_all("priority") {
            if let Ok(value) = value.to_str() {
                found.read(value);
            }
        }
        found
    }

    /// The priority in the payload of PRIORITY_UPDATE. Parameters that cannot be parsed have their
    /// default values.
    pub fn parse(value: &[u8]) -> Self {
        let mut found = Self::default();
        if let Ok(value) = std::str::from_utf8(value) {
            found.read(value);
        }
        found
    }

    /// Reads `u` and `i` of a structured dictionary; other members, and values out of range, are ignored.
    fn read(&mut self, value: &str) {
        for member in value.split(',') {
            let item = member.split(';').next().unwrap_or_default().trim();
            match item
                .split_once('=')
                .map_or((item, None), |(key, value)| (key, Some(value)))
            {
                ("u", Some(urgency)) => {
                    if let Ok(urgency @ 0..=7) = urgency.parse() {
                        self.urgency = urgency;
                    }
                }
                ("i", None | Some("?1")) => self.incremental = true,
                ("i", Some("?0")) => self.incremental = false,
                _ => {}
            }
        }
    }
}

/// The field value, without parameters that have their default value.
impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = Self::default();
        if self.urgency != default.urgency {
            write!(f, "u={}", self.urgency.min(7))?;
        }
        if self.incremental {
            let separator = match self.urgency == default.urgency {
                true => "",
                false => ", ",
            };
            write!(f, "{separator}i")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_and_incremental_are_parsed_and_invalid_values_ignored() {
        for (value, urgency, incremental) in [
            ("", 3, false),
            ("u=0", 0, false),
            ("u=5, i", 5, true),
            ("i=?1,u=7", 7, true),
            ("i=?0;x, u=2;foo=bar", 2, false),
            ("u=8, i=2", 3, false),
        ] {
            let expected = Priority {
                urgency,
                incremental,
            };
            assert_eq!(Priority::parse(value.as_bytes()), expected, "{value}");
            let mut request = Request::new(());
            let field = http::HeaderValue::from_static(value);
            request.headers_mut().insert("priority", field);
            assert_eq!(Priority::of(&request), expected, "{value}");
        }
    }

    #[test]
    fn tunnels_are_incremental_unless_they_say_otherwise() {
        for (value, urgency, incremental) in [
            (None, 3, true),
            (Some("u=1"), 1, true),
            (Some("i=?0"), 3, false),
        ] {
            let mut request = Request::new(());
            *request.method_mut() = Method::CONNECT;
            if let Some(value) = value {
                let field = http::HeaderValue::from_static(value);
                request.headers_mut().insert("priority", field);
            }
            let expected = Priority {
                urgency,
                incremental,
            };
            assert_eq!(Priority::of(&request), expected, "{value:?}");
        }
    }

    #[test]
    fn a_priority_that_is_written_is_read_again() {
        for urgency in 0..=7 {
            for incremental in [false, true] {
                let priority = Priority {
                    urgency,
                    incremental,
                };
                assert_eq!(Priority::parse(priority.to_string().as_bytes()), priority);
            }
        }
    }
}
