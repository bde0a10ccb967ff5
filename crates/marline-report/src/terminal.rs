//! Text of files and peers for a terminal, which interprets control characters.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a terminal interprets the character instead of displaying it: controls (C0, DEL and C1), separators of
/// lines, and those that change the direction of text around them.
const fn is_obeyed(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// `text` as one line: each character that a terminal would interpret is written as JSON writes it, as `\u001b`.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, is_obeyed)
}

/// The same for several lines: their ends, and tabs, are kept. JSON remains the same JSON.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| is_obeyed(c) && c != '\n' && c != '\t')
}

fn escape(text: &str, is_special: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_special) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_special(c) {
            // Writing to a String cannot fail.
            true => drop(write!(safe, "\\u{:04x}", u32::from(c))),
            false => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Writes a [`line()`] with its end.
pub(crate) fn write_line(f: &mut fmt::Formatter<'_>, text: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{}", line(&text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_escaped_and_other_text_is_not() {
        assert_eq!(
            line("\u{1b}[2Jx\u{9b}1m\r\n"),
            "\\u001b[2Jx\\u009b1m\\u000d\\u000a"
        );
        assert_eq!(line("\u{7f}\u{202e}\u{2028}"), "\\u007f\\u202e\\u2028");
        assert!(matches!(line("Zürich, 東京 → 1 %"), Cow::Borrowed(_)));
        assert_eq!(lines("a\tb\nc\u{8}"), "a\tb\nc\\u0008");
    }

    #[test]
    fn json_with_escaped_controls_is_the_same_value() {
        let value = serde_json::json!({ "a": "\u{7f}\u{9b}\u{202e}\u{1b}\n" });
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        let escaped = lines(&text);
        assert!(escaped.chars().all(|c| !is_obeyed(c) || c == '\n'));
        assert_eq!(serde_json::from_str(&escaped).ok(), Some(value));
    }
}
