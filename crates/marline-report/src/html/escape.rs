//! Escaping of text.

use std::borrow::Cow;

/// Escapes text for elements and quoted attributes. Control characters, which HTML does not
/// permit, become replacement characters.
pub fn escape(text: &str) -> Cow<'_, str> {
    let special = |c: char| {
        matches!(c, '&' | '<' | '>' | '"' | '\'') || (c.is_control() && c != '\n' && c != '\t')
    };
    if !text.contains(special) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if special(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Escapes prose. Names between backticks, as authors of experiments write them, become code.
pub fn prose(text: &str) -> Cow<'_, str> {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, others)) = after.split_once('`')
    {
        html += &escape(before);
        html += "<code>";
        html += &escape(code);
        html += "</code>";
        rest = others;
    }
    match html.is_empty() {
        true => escape(text),
        false => Cow::Owned(html + &escape(rest)),
    }
}

/// Prose for where there is no code, as in titles of windows: without the backticks of [`prose`].
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    match text.matches('`').count() {
        0 | 1 => escape(text),
        _ => Cow::Owned(escape(&text.replace('`', "")).into_owned()),
    }
}
