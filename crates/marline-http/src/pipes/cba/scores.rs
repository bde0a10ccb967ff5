//! Scores of radio and connection, and the most pipes that they allow (table I, section V-A).

use marline::settings::{Named, Word};

/// The scores of table I; there is no 4.
const SCORES: [usize; 4] = [1, 2, 3, 5];

/// The combination of the scores of radio and connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// The worse of them: a poor connection opens pipes regardless of the radio.
    #[default]
    Max,
    /// The better of them, as in algorithm 1: pipes are opened only if both are poor. It contradicts "as the condition
    /// degrades, we increase the number of pipes".
    Min,
}

impl Named for Combine {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "max",
            about: "The worse of them decides",
            value: Self::Max,
        },
        Word {
            name: "min",
            about: "The better of them decides (algorithm 1)",
            value: Self::Min,
        },
    ];
}

/// The number of pipes that a score allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mapping {
    /// The score itself, as in algorithm 1.
    #[default]
    Score,
    /// 1, 3 and 5 for excellent, good and poor, as in section V-A.
    Class,
}

impl Named for Mapping {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "score",
            about: "As many as the score: 1, 2, 3 or 5 (algorithm 1)",
            value: Self::Score,
        },
        Word {
            name: "class",
            about: "1, 3 or 5 for excellent, good and poor (section V-A)",
            value: Self::Class,
        },
    ];
}

/// The conditions of radio and connection, as far as they are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// NA_t in dB; unknown without a radio, or without access to it.
    pub na_db: Option<f64>,
    /// SRTT_t in milliseconds.
    pub srtt_ms: Option<f64>,
    /// PL_t: the share of packets that are lost.
    pub loss: Option<f64>,
}

/// The rule for the most pipes by scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MaximumRule {
    /// The combination of scores.
    pub combine: Combine,
    /// The number of pipes that a score allows.
    pub mapping: Mapping,
}

/// Scores, and the most pipes that they allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Maximum {
    /// The score of the radio, if it is known.
    pub na: Option<usize>,
    /// CA: the worse of the scores of round-trip time and losses, if one is known.
    pub ca: Option<usize>,
    /// The combined score.
    pub score: usize,
    /// Pipe_max.
    pub pipes: usize,
}

/// The score of NA_t. 20 and 13 dB belong to the better score; 0 dB to the worse, as in table I
/// ("<= 0").
pub fn score_sinr(na_db: f64) -> usize {
    let place = match na_db {
        db if db >= 20.0 => 0,
        db if db >= 13.0 => 1,
        db if db > 0.0 => 2,
        _ => 3,
    };
    SCORES[place]
}

/// The score of SRTT_t; edges belong to the better score.
pub fn score_srtt(srtt_ms: f64) -> usize {
    place_below(srtt_ms, [10.0, 100.0, 300.0])
}

/// The score of PL_t; edges belong to the better score.
pub fn score_loss(loss: f64) -> usize {
    place_below(loss, [1e-6, 1e-3, 1e-1])
}

fn place_below(value: f64, edges: [f64; 3]) -> usize {
    let place = edges.iter().take_while(|edge| value > **edge).count();
    SCORES[place]
}

/// Pipe_max. Unknown values do not count: without a radio, the connection decides alone. If nothing is known yet, there
/// is one pipe.
pub fn maximum(rule: MaximumRule, conditions: Conditions) -> Maximum {
    let na = conditions.na_db.map(score_sinr);
    let srtt = conditions.srtt_ms.map(score_srtt);
    let ca = srtt.max(conditions.loss.map(score_loss));
    let score = match (na, ca) {
        (Some(na), Some(ca)) => match rule.combine {
            Combine::Max => na.max(ca),
            Combine::Min => na.min(ca),
        },
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => 1,
    };
    let pipes = match (rule.mapping, score) {
        (Mapping::Class, 2) => 3,
        _ => score,
    };
    Maximum {
        na,
        ca,
        score,
        pipes,
    }
}
