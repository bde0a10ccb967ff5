//! Verdicts on published numbers.

use super::index::Rule;
use super::ours::Measured;

/// The outcome of the comparison of ours with a published number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    /// The interval of ours is inside of what holds.
    Held,
    /// It is inside in part.
    Undecided,
    /// It is not known, and the value is what holds.
    HeldByValue,
    /// It is not known, and the value is outside.
    NotHeldByValue,
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
    pub(crate) const ALL: [Self; 8] = [
        Self::Held,
        Self::Undecided,
        Self::HeldByValue,
        Self::NotHeldByValue,
        Self::NotHeld,
        Self::NotComparable,
        Self::NotRun,
        Self::NotReproduced,
    ];

    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Undecided => "undecided",
            Self::HeldByValue => "undecided, held by value",
            Self::NotHeldByValue => "undecided, **not held by value**",
            Self::NotHeld => "**not held**",
            Self::NotComparable => "not comparable",
            Self::NotRun => "not yet run",
            Self::NotReproduced => "not reproduced",
        }
    }
}

/// The share of a published number by which ours may differ.
const NEAR: f64 = 0.1;

/// The verdict on `published` by ours.
pub(crate) fn verdict(
    rule: Rule,
    tolerance: Option<f64>,
    published: f64,
    ours: Measured,
) -> Verdict {
    let [low, high] = ours.interval.unwrap_or([ours.value; 2]);
    let (least, most) = match rule {
        Rule::Near => {
            let tolerance = tolerance.unwrap_or(NEAR * published.abs());
            (published - tolerance, published + tolerance)
        }
        Rule::AtLeast => (published - tolerance.unwrap_or(0.0), f64::INFINITY),
        Rule::MoreThan => (published.next_up(), f64::INFINITY),
        Rule::AtMost => (f64::NEG_INFINITY, published + tolerance.unwrap_or(0.0)),
    };
    let is_known = ours.interval.is_some();
    if least <= low && high <= most {
        match is_known {
            true => Verdict::Held,
            false => Verdict::HeldByValue,
        }
    } else if high < least || most < low {
        match is_known {
            true => Verdict::NotHeld,
            false => Verdict::NotHeldByValue,
        }
    } else {
        Verdict::Undecided
    }
}

/// The verdict over several points.
pub(crate) fn over(verdicts: &[Verdict]) -> Verdict {
    let worst = [
        Verdict::NotHeld,
        Verdict::NotHeldByValue,
        Verdict::Undecided,
    ];
    let worst = worst.into_iter().find(|one| verdicts.contains(one));
    let is_held = verdicts.iter().all(|&one| one == Verdict::Held);
    worst.unwrap_or(match is_held {
        true => Verdict::Held,
        false => Verdict::HeldByValue,
    })
}

#[test]
fn a_number_holds_where_the_whole_interval_is_near_it() {
    let near = |interval| verdict(Rule::Near, None, 10.0, between(interval));
    assert_eq!(near([9.2, 10.8]), Verdict::Held);
    assert_eq!(near([8.8, 10.8]), Verdict::Undecided);
    assert_eq!(near([11.1, 12.0]), Verdict::NotHeld);
}

#[test]
fn without_an_interval_the_value_says_what_it_would_be() {
    let near = |value| {
        let ours = Measured {
            value,
            interval: None,
        };
        verdict(Rule::Near, None, 10.0, ours)
    };
    assert_eq!(near(10.8), Verdict::HeldByValue);
    assert_eq!(near(40.0), Verdict::NotHeldByValue);
}

#[cfg(test)]
fn between([low, high]: [f64; 2]) -> Measured {
    Measured {
        value: f64::midpoint(low, high),
        interval: Some([low, high]),
    }
}

#[test]
fn a_gain_holds_where_the_whole_interval_reaches_it() {
    let gain = |interval| verdict(Rule::AtLeast, None, 20.0, between(interval));
    assert_eq!(gain([21.0, 40.0]), Verdict::Held);
    assert_eq!(gain([15.0, 25.0]), Verdict::Undecided);
    assert_eq!(gain([5.0, 19.0]), Verdict::NotHeld);
    let most = verdict(Rule::AtMost, None, 5.0, between([1.0, 4.0]));
    assert_eq!(most, Verdict::Held);
}

#[test]
fn more_than_a_number_is_not_that_number() {
    let more = |interval| verdict(Rule::MoreThan, None, 8.0, between(interval));
    assert_eq!(more([8.0, 8.0]), Verdict::NotHeld);
    assert_eq!(more([11.0, 11.0]), Verdict::Held);
}

#[test]
fn a_number_of_several_points_holds_where_it_holds_at_all() {
    use Verdict::{Held, HeldByValue, NotHeld, NotHeldByValue, Undecided};
    assert_eq!(over(&[Held, Held]), Held);
    assert_eq!(over(&[Held, Undecided]), Undecided);
    assert_eq!(over(&[Held, Undecided, NotHeld]), NotHeld);
    assert_eq!(over(&[Held, HeldByValue]), HeldByValue);
    assert_eq!(over(&[HeldByValue, NotHeldByValue]), NotHeldByValue);
}
