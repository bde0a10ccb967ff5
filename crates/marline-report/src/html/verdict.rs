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
    /// It is as was promised.
    Holds,
    /// It is not as was promised.
    Fails,
    /// Too little was measured to say so.
    Unknown,
}

impl Verdict {
    /// The verdict in words, for a box or a cell of a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Pass => "Pass",
            Self::Differs => "Differs",
            Self::NotComparable => "Not comparable",
            Self::Holds => "Holds",
            Self::Fails => "Does not hold",
            Self::Unknown => "Not known",
        }
    }

    /// A sign that is not a word.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Pass | Self::Holds => "\u{2713}",
            Self::Differs => "\u{2260}",
            Self::Fails => "\u{2717}",
            Self::NotComparable | Self::Unknown => "\u{2013}",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Pass | Self::Holds => "pass",
            Self::Differs => "differs",
            Self::Fails => "fails",
            Self::NotComparable | Self::Unknown => "none",
        }
    }
}
