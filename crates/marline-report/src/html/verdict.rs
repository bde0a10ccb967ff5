//! How a result compares with what was expected.

/// How a result compares with what was published, or promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It shows what was to be shown.
    Pass,
    /// It shows something else.
    Differs,
    /// The two do not measure the same thing.
    NotComparable,
}

impl Verdict {
    /// The verdict in words, for a box or a cell of a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Differs => "Differs",
            Self::NotComparable => "Not comparable",
        }
    }

    /// A sign that is not a word.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Pass => "\u{2713}",
            Self::Differs => "\u{2260}",
            Self::NotComparable => "\u{2013}",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Differs => "differs",
            Self::NotComparable => "none",
        }
    }
}
