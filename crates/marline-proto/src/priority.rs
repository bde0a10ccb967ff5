//! Priorities of streams (RFC 9218).

use std::fmt;
use std::str::FromStr;

use marline_wire::StreamId;

/// The priority of a stream (RFC 9218, section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Priority {
    /// Urgency from 0 (most urgent) to 7.
    pub urgency: u8,
    /// Whether the receiver can use partial data, so that streams of one urgency share the path.
    pub incremental: bool,
    /// Position in the dependency tree, for schedulers that have one; it is not sent to the peer. Without it,
    /// the stream depends on none, and its urgency determines its weight.
    pub dependency: Option<Dependency>,
}

/// The stream that a stream depends on, and its weight among its siblings (RFC 7540, section 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dependency {
    /// The stream that is sent first; `None`, or a stream unknown to the scheduler, stands for the root.
    pub parent: Option<StreamId>,
    /// The share of the stream in proportion to its siblings, 1 to 256. Other values are clamped.
    pub weight: u16,
}

impl Dependency {
    /// The largest weight.
    pub const MAX_WEIGHT: u16 = 256;
}

/// Weights by urgency, from the most to the least urgent: those that browsers assigned to resources of that kind.
const WEIGHTS: [u16; Priority::MAX_URGENCY as usize + 1] = [256, 256, 220, 183, 147, 110, 110, 110];

impl Priority {
    /// The lowest urgency.
    pub const MAX_URGENCY: u8 = 7;

    /// A priority; an urgency above 7 counts as 7.
    pub const fn new(urgency: u8, incremental: bool) -> Self {
        Self {
            urgency: if urgency > Self::MAX_URGENCY {
                Self::MAX_URGENCY
            } else {
                urgency
            },
            incremental,
            dependency: None,
        }
    }

    /// The default priority of a stream that depends on `parent`, or on none, and has `weight` among its
    /// siblings.
    pub fn weighted(parent: Option<StreamId>, weight: u16) -> Self {
        Self {
            dependency: Some(Dependency { parent, weight }),
            ..Self::default()
        }
    }

    /// The weight among siblings, 1 to 256: that of the dependency, or else that of the urgency.
    pub fn weight(&self) -> u16 {
        let urgency = usize::from(self.urgency.min(Self::MAX_URGENCY));
        self.dependency.map_or(WEIGHTS[urgency], |dependency| {
            dependency.weight.clamp(1, Dependency::MAX_WEIGHT)
        })
    }

    /// The stream that this one depends on.
    pub fn parent(&self) -> Option<StreamId> {
        self.dependency?.parent
    }
}

impl Default for Priority {
    /// Urgency 3, not incremental (RFC 9218, section 4).
    fn default() -> Self {
        Self::new(3, false)
    }
}

impl fmt::Display for Priority {
    /// Formats the Priority field, which has no dependencies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "u={}", self.urgency)?;
        if self.incremental {
            f.write_str(", i")?;
        }
        Ok(())
    }
}

/// The text is not a Structured Fields dictionary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a priority: write it as `u=1, i`")]
pub struct InvalidPriority;

impl FromStr for Priority {
    type Err = InvalidPriority;

    /// Parses the Priority field (RFC 9218, section 4): a dictionary of Structured Fields. Unknown
    /// members, and values of another type or range, count as absent.
    fn from_str(field: &str) -> Result<Self, Self::Err> {
        let mut priority = Self::default();
        let mut rest = Cursor(field.trim_matches(' '));
        if rest.0.is_empty() {
            return Ok(priority);
        }
        loop {
            let key = rest.key()?;
            let value = if rest.eat(b'=') { rest.value()? } else { "?1" };
            rest.parameters()?;
            match (key, value) {
                ("u", value) => priority.urgency = urgency(value),
                ("i", "?1") => priority.incremental = true,
                ("i", _) => priority.incremental = false,
                _ => {}
            }
            rest.skip_whitespace();
            if rest.0.is_empty() {
                return Ok(priority);
            }
            if !rest.eat(b',') {
                return Err(InvalidPriority);
            }
            rest.skip_whitespace();
        }
    }
}

/// Parses an urgency; the default if `value` is not one.
fn urgency(value: &str) -> u8 {
    value
        .parse()
        .ok()
        .filter(|urgency| *urgency <= Priority::MAX_URGENCY)
        .unwrap_or(Priority::default().urgency)
}

/// The rest of a Structured Field (RFC 9651, section 4.2).
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn eat(&mut self, byte: u8) -> bool {
        let eaten = self.0.as_bytes().first() == Some(&byte);
        if eaten {
            self.0 = &self.0[1..];
        }
        eaten
    }

    fn skip_whitespace(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    /// Takes the longest non-empty prefix whose characters all satisfy `is_part`; an error if there is none.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> Result<&'a str, InvalidPriority> {
        let end = self.0.find(|c| !is_part(c)).unwrap_or(self.0.len());
        if end == 0 {
            return Err(InvalidPriority);
        }
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(taken)
    }

    fn key(&mut self) -> Result<&'a str, InvalidPriority> {
        if !self
            .0
            .starts_with(|c: char| c.is_ascii_lowercase() || c == '*')
        {
            return Err(InvalidPriority);
        }
        self.take(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c))
    }

    /// An item or an inner list, without its parameters.
    fn value(&mut self) -> Result<&'a str, InvalidPriority> {
        let start = self.0;
        if self.eat(b'(') {
            loop {
                self.skip_whitespace();
                if self.eat(b')') {
                    break;
                }
                self.item()?;
                self.parameters()?;
            }
        } else {
            self.item()?;
        }
        Ok(&start[..start.len() - self.0.len()])
    }

    fn item(&mut self) -> Result<(), InvalidPriority> {
        if !self.eat(b'"') {
            let starts = |c: char| c.is_ascii_alphanumeric() || "-*:?@%".contains(c);
            if !self.0.starts_with(starts) {
                return Err(InvalidPriority);
            }
            self.take(|c| c.is_ascii_graphic() && !",;()\"".contains(c))?;
            return Ok(());
        }
        let mut escaped = false;
        let end = self
            .0
            .find(|c| {
                let closes = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                closes
            })
            .ok_or(InvalidPriority)?;
        self.0 = &self.0[end + 1..];
        Ok(())
    }

    fn parameters(&mut self) -> Result<(), InvalidPriority> {
        while self.eat(b';') {
            self.skip_whitespace();
            self.key()?;
            if self.eat(b'=') {
                self.item()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
