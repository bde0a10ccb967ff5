//! Lines of a text, for messages.

/// The offsets of the first bytes of a text's lines.
#[derive(Clone, Debug)]
pub struct Lines(Vec<usize>);

impl Lines {
    /// The lines of `text`.
    pub fn of(text: &str) -> Self {
        let breaks = text.match_indices('\n').map(|(at, _)| at + 1);
        Self(std::iter::once(0).chain(breaks).collect())
    }

    /// The number of the line with the byte at `offset`, from 1.
    pub fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|start| *start <= offset)
    }

    /// The key of the `key = value` in `text` whose value contains the byte at `offset`, if both are on one line and the
    /// key needs no quotes.
    pub fn key_before<'t>(&self, text: &'t str, offset: usize) -> Option<&'t str> {
        let start = *self.0.get(self.line(offset).checked_sub(1)?)?;
        let (key, _) = text.get(start..offset)?.split_once('=')?;
        let is_bare =
            |byte| matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.');
        let key = key.trim();
        (!key.is_empty() && key.bytes().all(is_bare)).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_with_its_line_feed() {
        let lines = Lines::of("a\n\nbc");
        let of = [0, 1, 2, 3, 4, 100].map(|offset| lines.line(offset));
        assert_eq!(of, [1, 1, 2, 3, 3, 3]);
    }

    #[test]
    fn a_value_has_the_key_of_its_line() {
        let text = "a = 1\n b.c =2\n\"d=1\", = ";
        let lines = Lines::of(text);
        let of = [0, 3, 4, 12, 13, 14, 20, 100].map(|offset| lines.key_before(text, offset));
        let (a, bc) = (Some("a"), Some("b.c"));
        assert_eq!(of, [None, a, a, bc, bc, None, None, None]);
    }
}
