//! Verdicts about results.

/// The comparison of a result with a published result or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It agrees with the published result.
    Pass,
    /// It differs from the published result.
    Differs,
    /// It does not measure the same quantity.
    NotComparable,
    /// The claim holds.
    Holds,
    /// The claim does not hold.
    Fails,
    /// The measurements allow either.
    Undecided,
    /// The claim depends on values that were not measured.
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
            Self::Undecided => "Undecided",
            Self::Unknown => "Not known",
        }
    }

    /// A symbol for the verdict.
    pub(super) const fn sign(self) -> &'static str {
        match self {
            Self::Pass | Self::Holds => "\u{2713}",
            Self::Differs => "\u{2260}",
            Self::Fails => "\u{2717}",
            Self::Undecided => "?",
            Self::NotComparable | Self::Unknown => "\u{2013}",
        }
    }

    pub(super) const fn class(self) -> &'static str {
        match self {
            Self::Pass | Self::Holds => "pass",
            Self::Differs => "differs",
            Self::Fails => "fails",
            Self::NotComparable | Self::Undecided | Self::Unknown => "none",
        }
    }
}
