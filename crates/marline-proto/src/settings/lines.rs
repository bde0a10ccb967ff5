//! Lines of a text, for messages.

/// The offsets at which the lines of a text begin.
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
}
