//! Messages about unknown words, with the nearest known one.

use std::borrow::Cow;

/// Lists of known words stop helping when they are longer than this, if a near word is found.
const LISTED: usize = 12;

/// Messages quote no more characters of a word than this.
const QUOTED: usize = 64;

/// `text` as messages quote it: in one line, and only the beginning of one that is long.
pub fn quote(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(QUOTED) {
        Some((end, _)) => Cow::Owned(format!("{}...", one_line(&text[..end]))),
        None => one_line(text),
    }
}

/// `text` with escapes for line breaks and other control characters, which a terminal would obey.
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

/// `unknown {what} "{word}"`, with the nearest known word if one is near, and those that are known.
pub fn unknown<'a>(what: &str, word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut words: Vec<&str> = Vec::new();
    for name in known {
        if !words.contains(&name) {
            words.push(name);
        }
    }
    let nearest = words
        .iter()
        .filter_map(|name| Some((near(word, name)?, *name)))
        .min_by_key(|(distance, _)| *distance);
    let word = quote(word);
    match nearest {
        Some((_, name)) if words.len() > LISTED => {
            format!("unknown {what} \"{word}\"; did you mean {name}?")
        }
        Some((_, name)) => format!(
            "unknown {what} \"{word}\"; did you mean {name}? known: {}",
            words.join(", ")
        ),
        None => format!("unknown {what} \"{word}\"; known: {}", words.join(", ")),
    }
}

/// The distance of `word` from `name` if somebody may have meant `name`. Words of another length are not compared: what a
/// file has for a word can be long.
fn near(word: &str, name: &str) -> Option<usize> {
    let most = (name.len() / 3).max(1).min(name.len().saturating_sub(1));
    if word.len().abs_diff(name.len()) > most * char::MAX.len_utf8() {
        return None;
    }
    Some(distance(word, name)).filter(|distance| *distance <= most)
}

/// Characters to insert, delete, replace or swap with their neighbor, so that `a` becomes `b` (optimal string
/// alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_of_two_words_is_their_number_of_edits() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("hybird", "hybrid", 1),
            ("fiar", "fair", 1),
            ("cubik", "cubic", 1),
            ("scope", "scop", 1),
            ("lissen", "listen", 1),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn only_a_similar_word_is_proposed() {
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
    fn a_long_word_is_quoted_in_part_and_compared_with_none() {
        let long = "cubic".repeat(1 << 20);
        assert_eq!(near(&long, "cubic"), None);
        let message = unknown("controller", &long, ["newreno", "cubic"]);
        assert!(message.len() < 200, "{} bytes", message.len());
        assert!(message.contains("cubi...\"; known: newreno"), "{message}");
        assert_eq!(quote("cubic"), "cubic");
        assert_eq!(
            quote(&"\u{e9}".repeat(65)),
            format!("{}...", "\u{e9}".repeat(64))
        );
    }
}
