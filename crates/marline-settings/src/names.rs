//! Messages about unknown names, with the nearest known ones.

use std::borrow::Cow;

/// Largest number of names in a message.
const LISTED: usize = 12;

/// Number of nearest names in a message if there are more.
const NEAREST: usize = 3;

/// Largest number of characters of a word that are quoted and compared.
const QUOTED: usize = 64;

/// Smallest number of bytes that can abbreviate a part of a name, as `conn` for `connections`.
const MIN_PART: usize = 3;

/// `text` as quoted in messages: on one line, and truncated if it is long.
pub fn quote(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}...", one_line(&text[..end]))),
        None => one_line(text),
    }
}

/// `text` with line breaks and other control characters escaped, which a terminal would interpret.
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() {
            true => line.extend(c.escape_default()),
            false => line.push(c),
        }
    }
    Cow::Owned(line)
}

/// `unknown {what} "{word}"` with [`advice`].
pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let advice = advice(word, known);
    format!("unknown {what} \"{}\"; {advice}", quote(word))
}

/// The name that `word` was probably meant to be, or else the `known` names: all, if they are few, or the nearest.
pub fn advice<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in known {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let meant = meant(word, &names);
    match (meant.is_empty(), names.len() > LISTED) {
        (false, true) => format!("did you mean {}?", or(&meant)),
        (false, false) => format!("did you mean {}? known: {}", or(&meant), names.join(", ")),
        (true, false) => format!("known: {}", names.join(", ")),
        (true, true) => {
            let nearest = nearest(word, &names);
            format!("the nearest of {} are {}", names.len(), nearest.join(", "))
        }
    }
}

/// The `names` that `word` was probably meant to be: those with the fewest edits, or else those that share parts.
fn meant<'a>(word: &str, names: &[&'a str]) -> Vec<&'a str> {
    let near = names
        .iter()
        .filter_map(|name| Some((edits(word, name)?, *name)));
    if let Some((_, name)) = near.min_by_key(|(edits, _)| *edits) {
        return vec![name];
    }
    let sharing = names.iter().filter(|name| shares_parts(word, name));
    let mut sharing: Vec<_> = sharing.copied().collect();
    sharing.sort_by_key(|name| name.len());
    sharing.truncate(NEAREST);
    sharing
}

/// The edits between `word` and `name` if it was probably meant. Words of very different length are not compared: a word in a
/// file can be long.
fn edits(word: &str, name: &str) -> Option<usize> {
    let most = (name.len() / 3).max(1).min(name.len().saturating_sub(1));
    if word.len().abs_diff(name.len()) > most * char::MAX.len_utf8() {
        return None;
    }
    let edits = strsim::osa_distance(&normalized(word), &normalized(name));
    Some(edits).filter(|edits| *edits <= most)
}

/// Whether each part of `word` begins a part of `name`, as those of `max-conn` do in `max_connections`, or each part of `name` is
/// one of `word`, as in `cert_file` for `cert`.
fn shares_parts(word: &str, name: &str) -> bool {
    let (word, name) = (normalized(word), normalized(name));
    let all = |some: &str, is_in_other: &dyn Fn(&str) -> bool| {
        let mut some = parts(some).peekable();
        some.peek().is_some() && some.all(is_in_other)
    };
    all(&word, &|part| {
        parts(&name)
            .any(|other| other == part || (part.len() >= MIN_PART && other.starts_with(part)))
    }) || all(&name, &|part| parts(&word).any(|other| other == part))
}

fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_alphanumeric())
        .filter(|part| !part.is_empty())
}

/// The names most similar to `word`, regardless of the distance.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Vec<&'a str> {
    let mut names = nearest_first(word, names.iter().copied());
    names.truncate(NEAREST);
    names
}

/// The `names` by their distance from `word`: by the difference of numbers with equal units, and then by similar letters.
pub fn nearest_first<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let number = quantity(word);
    let distance = |name: &str| match (number, quantity(name)) {
        (Some((a, unit)), Some((b, other))) if unit == other => (a - b).abs(),
        _ => f64::INFINITY,
    };
    let normal = normalized(word);
    let mut names: Vec<_> = names
        .into_iter()
        .map(|name| {
            let similar = strsim::jaro_winkler(&normal, &normalized(name));
            (distance(name), similar, name)
        })
        .collect();
    names.sort_by(|one, other| {
        let by_similarity = || other.1.total_cmp(&one.1);
        one.0.total_cmp(&other.0).then_with(by_similarity)
    });
    names.into_iter().map(|(_, _, name)| name).collect()
}

/// The number that a word begins with, and its unit.
fn quantity(word: &str) -> Option<(f64, &str)> {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let end = word.find(|c| !is_number(c)).unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    Some((number.parse().ok()?, unit))
}

/// The beginning of `word` in lower case, with `_` for each `-`, as keys are compared.
fn normalized(word: &str) -> String {
    let begin = word.chars().take(QUOTED).flat_map(char::to_lowercase);
    begin.map(|c| if c == '-' { '_' } else { c }).collect()
}

/// `a, b or c`.
pub(crate) fn or(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More than are listed.
    const KEYS: [&str; 14] = [
        "listen",
        "cert",
        "key",
        "profile",
        "qlog",
        "metrics",
        "access_log",
        "max_connections",
        "idle_timeout",
        "header_timeout",
        "handshake_timeout",
        "receive_window",
        "up.loss",
        "down.loss",
    ];

    #[test]
    fn names_are_ordered_by_numbers_and_by_letters() {
        let order = |word, names: &[&'static str]| nearest_first(word, names.iter().copied());
        assert_eq!(
            order("2500", &["500", "10000", "2400", "near"]),
            ["2400", "500", "10000", "near"]
        );
        assert_eq!(
            order("9ms", &["1s", "100ms", "10ms"])[..2],
            ["10ms", "100ms"]
        );
        assert_eq!(order("fra", &["near", "far"]), ["far", "near"]);
    }

    #[test]
    fn the_nearest_names_are_proposed() {
        for (word, advised) in [
            ("lissen", "did you mean listen?"),
            ("Listen", "did you mean listen?"),
            ("access-lgo", "did you mean access_log?"),
            ("down.los", "did you mean down.loss?"),
            ("max_conn", "did you mean max_connections?"),
            ("connections", "did you mean max_connections?"),
            (
                "timeout",
                "did you mean idle_timeout, header_timeout or handshake_timeout?",
            ),
            ("cert_file", "did you mean cert?"),
            ("log", "did you mean qlog?"),
            ("up", "did you mean up.loss?"),
            ("qqqqqqqq", "the nearest of 14 are "),
        ] {
            let advice = advice(word, KEYS);
            assert!(advice.starts_with(advised), "{word}: {advice}");
            assert!(advice.matches(',').count() < 3, "{word}: {advice}");
        }
    }

    #[test]
    fn few_names_are_all_listed() {
        let known = ["newreno", "cubic", "bbr"];
        assert_eq!(
            unknown("controller", "cubci", known),
            "unknown controller \"cubci\"; did you mean cubic? known: newreno, cubic, bbr"
        );
        assert_eq!(
            unknown("controller", "vegas", known),
            "unknown controller \"vegas\"; known: newreno, cubic, bbr"
        );
    }

    #[test]
    fn quotes_stay_in_one_line() {
        assert_eq!(quote("hy\nbrid"), "hy\\nbrid");
        assert_eq!(quote("\u{1b}[2J"), "\\u{1b}[2J");
        assert_eq!(quote("größer \"x\""), "größer \"x\"");
    }

    #[test]
    fn a_long_word_is_quoted_and_compared_in_part() {
        let long = "cubic".repeat(1 << 20);
        assert_eq!(edits(&long, "cubic"), None);
        let message = unknown("controller", &long, ["newreno", "cubic"]);
        assert!(message.len() < 200, "{} bytes", message.len());
        assert!(message.contains("cubi...\"; known: newreno"), "{message}");
        assert!(advice(&long, KEYS).len() < 200);
        assert_eq!(quote("cubic"), "cubic");
        assert_eq!(
            quote(&"\u{e9}".repeat(65)),
            format!("{}...", "\u{e9}".repeat(64))
        );
    }
}
