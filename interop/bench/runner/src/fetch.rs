//! Objects to fetch, and their form on the command line.

use std::str::FromStr;

/// An object that is fetched over links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fetch {
    /// The only link over which it is fetched; `None` for all.
    link: Option<String>,
    /// The size, as it was written.
    pub(crate) size: String,
    pub(crate) bytes: u64,
    /// Connections over which it is fetched, one after another.
    count: u64,
}

/// With `--quick`, a part of the connections.
const QUICK: u64 = 4;

impl Fetch {
    /// Whether it is fetched over the link of this name.
    pub(crate) fn is_over(&self, link: &str) -> bool {
        self.link.as_deref().is_none_or(|only| only == link)
    }

    /// Connections in a round.
    pub(crate) fn count(&self, quick: bool) -> u64 {
        match quick {
            true => self.count.div_ceil(QUICK),
            false => self.count,
        }
    }
}

impl FromStr for Fetch {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (link, what) = match text.rsplit_once(':') {
            Some((link, what)) => (Some(link.to_owned()), what),
            None => (None, text),
        };
        let (size, count) = what.split_once('x').unwrap_or((what, "1"));
        let (digits, unit) = match (size.strip_suffix("kB"), size.strip_suffix("MB")) {
            (Some(digits), _) => (digits, 1000),
            (_, Some(digits)) => (digits, 1_000_000),
            _ => return Err("expected a size, as 10kB or 5MB"),
        };
        let number: u64 = digits.parse().map_err(|_| "expected a size, as 10kB")?;
        let bytes = number.checked_mul(unit).filter(|bytes| *bytes > 0);
        let count: u64 = count.parse().map_err(|_| "expected a count, as 10kBx30")?;
        if count == 0 {
            return Err("the count is 1 or more");
        }
        Ok(Self {
            link,
            size: size.to_owned(),
            bytes: bytes.ok_or("the size is 1 kB or more")?,
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_counts_and_links_are_read() {
        let one: Fetch = "5MB".parse().unwrap();
        assert_eq!((one.bytes, one.count(false)), (5_000_000, 1));
        assert!(one.is_over("wifi") && one.is_over("lte"));
        let many: Fetch = "wifi:10kBx30".parse().unwrap();
        assert_eq!(
            (many.bytes, many.count(false), many.count(true)),
            (10_000, 30, 8)
        );
        assert!(many.is_over("wifi") && !many.is_over("lte"));
        assert_eq!(many.size, "10kB");
    }

    #[test]
    fn mistakes_are_refused() {
        for text in [
            "",
            "5",
            "kB",
            "5GB",
            "0kB",
            "10kBx0",
            "10kBxx",
            "99999999999999999MB",
        ] {
            assert!(text.parse::<Fetch>().is_err(), "{text}");
        }
    }
}
