//! Verdicts on published numbers.

use super::index::Rule;

/// The outcome of the comparison of ours with a published number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The interval of ours is inside of what holds.
    Held,
    /// It is inside in part, or not known.
    Undecided,
    /// It is outside.
    NotHeld,
    /// Ours is another quantity.
    NotComparable,
    /// The results do not have it.
    NotRun,
    /// Nothing here reproduces it.
    NotReproduced,
}

impl Verdict {
    pub(crate) const ALL: [Self; 6] = [
        Self::Held,
        Self::Undecided,
        Self::NotHeld,
        Self::NotComparable,
        Self::NotRun,
        Self::NotReproduced,
    ];

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Undecided => "undecided",
            Self::NotHeld => "**not held**",
            Self::NotComparable => "not comparable",
            Self::NotRun => "not yet run",
            Self::NotReproduced => "not reproduced",
        }
    }
}

/// The share of a published number by which ours may differ.
const NEAR: f64 = 0.1;

/// The verdict on `published`, of which ours has this 95 % interval.
pub(crate) fn verdict(
    rule: Rule,
    tolerance: Option<f64>,
    published: f64,
    interval: Option<[f64; 2]>,
) -> Verdict {
    let Some([low, high]) = interval else {
        return Verdict::Undecided;
    };
    let (least, most) = match rule {
        Rule::Near => {
            let tolerance = tolerance.unwrap_or(NEAR * published.abs());
            (published - tolerance, published + tolerance)
        }
        Rule::AtLeast => (published - tolerance.unwrap_or(0.0), f64::INFINITY),
        Rule::AtMost => (f64::NEG_INFINITY, published + tolerance.unwrap_or(0.0)),
    };
    if least <= low && high <= most {
        Verdict::Held
    } else if high < least || most < low {
        Verdict::NotHeld
    } else {
        Verdict::Undecided
    }
}

/// The verdict over several points.
pub(crate) fn over(verdicts: &[Verdict]) -> Verdict {
    if verdicts.contains(&Verdict::NotHeld) {
        Verdict::NotHeld
    } else if verdicts.iter().all(|&one| one == Verdict::Held) {
        Verdict::Held
    } else {
        Verdict::Undecided
    }
}

#[test]
fn a_number_holds_where_the_whole_interval_is_near_it() {
    let near = |interval| verdict(Rule::Near, None, 10.0, interval);
    assert_eq!(near(Some([9.2, 10.8])), Verdict::Held);
    assert_eq!(near(Some([8.8, 10.8])), Verdict::Undecided);
    assert_eq!(near(Some([11.1, 12.0])), Verdict::NotHeld);
    assert_eq!(near(None), Verdict::Undecided);
}

#[test]
fn a_gain_holds_where_the_whole_interval_reaches_it() {
    let gain = |interval| verdict(Rule::AtLeast, None, 20.0, Some(interval));
    assert_eq!(gain([21.0, 40.0]), Verdict::Held);
    assert_eq!(gain([15.0, 25.0]), Verdict::Undecided);
    assert_eq!(gain([5.0, 19.0]), Verdict::NotHeld);
    let nothing = verdict(Rule::AtLeast, Some(3.0), 0.0, Some([-2.0, 1.0]));
    assert_eq!(nothing, Verdict::Held);
    let most = verdict(Rule::AtMost, None, 5.0, Some([1.0, 4.0]));
    assert_eq!(most, Verdict::Held);
}

#[test]
fn a_number_of_several_points_holds_where_it_holds_at_all() {
    use Verdict::{Held, NotHeld, Undecided};
    assert_eq!(over(&[Held, Held]), Held);
    assert_eq!(over(&[Held, Undecided]), Undecided);
    assert_eq!(over(&[Held, Undecided, NotHeld]), NotHeld);
}
