//! The choice of a pipe for an object (algorithm 1).

use marline::settings::{Named, Word};

/// The priority of scripts, "high" (table II).
const HIGH: u8 = 3;

/// The objects that get the pipe with the largest burst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HighRule {
    /// Objects of high priority or above, as in the paper's text.
    #[default]
    GeHigh,
    /// Only those above high, as in algorithm 1.
    GtHigh,
}

impl Named for HighRule {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "ge_high",
            about: "Those of high priority and above (the paper's text)",
            value: Self::GeHigh,
        },
        Word {
            name: "gt_high",
            about: "Those above high priority (algorithm 1)",
            value: Self::GtHigh,
        },
    ];
}

/// An object that needs a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its priority, 1 to 4 (table II).
    pub priority: u8,
    /// Its size in bytes, if it is known.
    pub bytes: Option<u64>,
    /// Whether its application is in the foreground.
    pub foreground: bool,
}

/// The decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The object goes to this one of the pipes.
    Use(usize),
    /// It needs one more pipe.
    Create,
}

/// Chooses a pipe. `alphas` contains the margin of each pipe, in the order of their creation: `None` for one at which
/// more arrives than it serves; `most` is Pipe_max. Of equals, the earliest pipe is chosen.
///
/// The paper leaves open which pipe fits best: it is the one with the least positive alpha, if the size of the object is known,
/// the one with the least alpha that is not below it, or else with the largest.
pub fn pick(alphas: &[Option<f64>], most: usize, request: Request, rule: HighRule) -> Pick {
    if alphas.is_empty() {
        return Pick::Create;
    }
    if !request.foreground {
        return Pick::Use(0);
    }
    let alpha = |pipe: &usize| alphas[*pipe].unwrap_or(f64::NEG_INFINITY);
    let all = 0..alphas.len();
    let largest = (all.clone()).fold(0, |best, pipe| match alpha(&pipe) > alpha(&best) {
        true => pipe,
        false => best,
    });
    if alpha(&largest) <= 0.0 {
        return match most > alphas.len() {
            true => Pick::Create,
            false => Pick::Use(largest),
        };
    }
    let wants_largest = match rule {
        HighRule::GeHigh => request.priority >= HIGH,
        HighRule::GtHigh => request.priority > HIGH,
    };
    if wants_largest {
        return Pick::Use(largest);
    }
    let least = request.bytes.unwrap_or(0) as f64;
    let fitting = all.filter(|pipe| alpha(pipe) > 0.0 && alpha(pipe) >= least);
    let best = fitting.min_by(|a, b| alpha(a).total_cmp(&alpha(b)));
    Pick::Use(best.unwrap_or(largest))
}
