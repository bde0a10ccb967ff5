//! URLs with lists and ranges, as curl has them: `{a,b}`, `[1-10]`, `[01-10:3]`, `[a-z]`.

use std::net::Ipv6Addr;

/// The most URLs that one stands for.
const MOST: usize = 100_000;

/// One of the URLs that a pattern stands for, and the values of its lists and ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expanded {
    pub(super) url: String,
    pub(super) values: Vec<String>,
}

/// The URLs that `pattern` stands for.
///
/// # Errors
/// The pattern is malformed, or stands for too many.
pub(super) fn expand(pattern: &str) -> Result<Vec<Expanded>, String> {
    let mut all = vec![Expanded {
        url: String::new(),
        values: Vec::new(),
    }];
    let mut rest = pattern;
    while let Some(first) = rest.chars().next() {
        let escaped = rest.strip_prefix('\\').and_then(|rest| rest.chars().next());
        let literal = match (first, escaped) {
            ('\\', Some(escaped @ ('{' | '}' | '[' | ']'))) => {
                rest = &rest[2..];
                escaped.to_string()
            }
            ('{' | '[', _) if !is_address(rest) => {
                let end = rest
                    .find(if first == '{' { '}' } else { ']' })
                    .ok_or_else(|| malformed(pattern, "it is not closed"))?;
                let inside = &rest[1..end];
                rest = &rest[end + 1..];
                let values = match first {
                    '{' => inside.split(',').map(str::to_owned).collect(),
                    _ => range(inside).ok_or_else(|| malformed(pattern, "it is not a range"))?,
                };
                if all.len().saturating_mul(values.len()) > MOST {
                    return Err(malformed(pattern, "it stands for more than 100,000 URLs"));
                }
                all = all
                    .iter()
                    .flat_map(|one| values.iter().map(|value| one.with(value)))
                    .collect();
                continue;
            }
            ('[', _) => {
                let end = rest.find(']').map_or(rest.len(), |end| end + 1);
                let literal = rest[..end].to_owned();
                rest = &rest[end..];
                literal
            }
            _ => {
                rest = &rest[first.len_utf8()..];
                first.to_string()
            }
        };
        for one in &mut all {
            one.url.push_str(&literal);
        }
    }
    Ok(all)
}

impl Expanded {
    fn with(&self, value: &str) -> Self {
        let mut values = self.values.clone();
        values.push(value.to_owned());
        Self {
            url: format!("{}{value}", self.url),
            values,
        }
    }

    /// `name` with `#1`, `#2` and so on replaced by the values.
    pub(super) fn name(&self, name: &str) -> String {
        let mut named = String::new();
        let mut rest = name;
        while let Some(at) = rest.find('#') {
            named.push_str(&rest[..at]);
            let digits = rest[at + 1..]
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count();
            let number = rest[at + 1..at + 1 + digits].parse::<usize>();
            let value = number
                .ok()
                .and_then(|number| self.values.get(number.checked_sub(1)?));
            match value {
                // A value must not lead to another directory.
                Some(value) => named.push_str(&value.replace('/', "_")),
                None => named.push_str(&rest[at..at + 1 + digits]),
            }
            rest = &rest[at + 1 + digits..];
        }
        named + rest
    }
}

fn malformed(pattern: &str, reason: &str) -> String {
    format!("{pattern}: {reason}; with -g, brackets and braces have no meaning")
}

/// Whether `text` begins with an IPv6 address in brackets.
fn is_address(text: &str) -> bool {
    let inside = text
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next());
    inside.is_some_and(|inside| {
        let address = inside.split('%').next().unwrap_or_default();
        address.parse::<Ipv6Addr>().is_ok()
    })
}

/// The values of `1-10`, `001-100:10` or `a-z:2`.
fn range(text: &str) -> Option<Vec<String>> {
    let (bounds, step) = match text.split_once(':') {
        Some((bounds, step)) => (bounds, step.parse::<usize>().ok().filter(|step| *step > 0)?),
        None => (text, 1),
    };
    let (first, last) = bounds.split_once('-')?;
    let letter = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    if let (Some(first), Some(last)) = (letter(first), letter(last)) {
        let values = (first..=last)
            .step_by(step)
            .map(|byte| char::from(byte).to_string());
        return Some(values.collect()).filter(|values: &Vec<_>| !values.is_empty());
    }
    let is_padded = first.starts_with('0') && first.len() > 1;
    let width = if is_padded { first.len() } else { 0 };
    let (first, last) = (first.parse::<u64>().ok()?, last.parse::<u64>().ok()?);
    if first > last || (last - first) / step as u64 >= MOST as u64 {
        return None;
    }
    let values = (first..=last).step_by(step);
    Some(values.map(|number| format!("{number:0width$}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(pattern: &str) -> Vec<String> {
        expand(pattern)
            .unwrap()
            .into_iter()
            .map(|one| one.url)
            .collect()
    }

    #[test]
    fn lists_and_ranges_are_expanded_as_by_curl() {
        assert_eq!(urls("h/{a,b}"), ["h/a", "h/b"]);
        assert_eq!(urls("h/[1-3]"), ["h/1", "h/2", "h/3"]);
        assert_eq!(urls("h/[08-10]"), ["h/08", "h/09", "h/10"]);
        assert_eq!(urls("h/[a-e:2]"), ["h/a", "h/c", "h/e"]);
        assert_eq!(urls("h/{a,b}[1-2]"), ["h/a1", "h/a2", "h/b1", "h/b2"]);
        assert_eq!(urls("https://[::1]:1/[1-2]").len(), 2);
        assert_eq!(urls(r"h/\{a\}"), ["h/{a}"]);
        for wrong in [
            "h/{a",
            "h/[1-",
            "h/[b]",
            "h/[3-1]",
            "h/[1-9:0]",
            "h/[1-999999]",
        ] {
            assert!(expand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_of_files_take_the_values() {
        let all = expand("h/{a,../b}[1-2]").unwrap();
        assert_eq!(all[1].name("f_#1-#2.x#3"), "f_a-2.x#3");
        assert_eq!(all[2].name("#1"), ".._b");
    }
}
