//! Verdicts: whether results meet an experiment's claims.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::ComparisonResult;
use crate::scenario::{Claim, Must, Value};

/// The verdict on a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MustResult {
    /// The claim, as text.
    pub text: String,
    /// The known reason why it does not hold, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The claim, as a condition.
    pub claim: Claim,
    /// Whether it holds; `None` if too little was measured to decide.
    pub holds: Option<bool>,
    /// Comparisons that it covers.
    pub of: usize,
    /// Comparisons that meet it.
    pub met: usize,
    /// Comparisons required to meet it.
    pub needed: usize,
    /// Comparisons in which the first variant is better with 95 % confidence, by [`ComparisonResult::sure_interval`].
    pub better: usize,
    /// Comparisons in which it is worse with 95 % confidence.
    pub worse: usize,
    /// Comparisons in which not every repeat has a valid pair.
    pub incomplete: usize,
    /// Comparisons without a measured improvement.
    pub unmeasured: usize,
    /// Comparisons that do not meet it.
    pub violations: Vec<ComparisonResult>,
}

/// A comparison that a claim covers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered<'a> {
    pub(super) result: &'a ComparisonResult,
    /// The comparison whose improvement is to be kept, or whose sign is to match.
    pub(super) gain: Option<&'a ComparisonResult>,
}

impl Covered<'_> {
    /// Whether `claim` applies: there is a measured improvement to keep.
    fn counts(&self, claim: Claim) -> bool {
        let interval = self.gain.and_then(|gain| gain.ci95);
        claim == Claim::RanksAs || interval.is_none_or(|[low, _]| low > 0.0)
    }

    /// The improvement that the claim refers to.
    fn measure(&self) -> Option<f64> {
        match self.gain {
            Some(gain) => gain.improvement_percent,
            None => self.result.published_percent,
        }
    }

    /// Whether the claim can be checked.
    fn is_measured(&self) -> bool {
        let has_gain = |gain: &ComparisonResult| gain.improvement_percent.is_some();
        self.result.improvement_percent.is_some() && self.gain.is_none_or(has_gain)
    }
}

impl MustResult {
    /// Checks the claim of `must` against `covered` comparisons, each of which has `repeats` pairs if all runs count.
    pub(super) fn judge(must: &Must, covered: &[Covered<'_>], repeats: u32) -> Self {
        let claim = must.claim;
        let covered: Vec<_> = covered.iter().filter(|one| one.counts(claim)).collect();
        let of = covered.len();
        let sure = |is: fn([f64; 2]) -> bool| {
            let intervals = covered.iter().filter_map(|one| one.result.sure_interval());
            intervals.filter(|interval| is(*interval)).count()
        };
        let (mut met, mut unmeasured, mut violations) = (0, 0, Vec::new());
        for one in &covered {
            match one.result.improvement_percent.filter(|_| one.is_measured()) {
                None => unmeasured += 1,
                Some(percent) if claim.is_met(percent, one.measure()) => met += 1,
                Some(_) => violations.push(one.result.clone()),
            }
        }
        let needed = claim.needed(of);
        let is_short = |one: &&&Covered<'_>| one.result.pairs < repeats as usize;
        let holds = match of {
            0 => None,
            _ if met >= needed => Some(true),
            // Even if all unmeasured comparisons met the claim, they would be too few.
            _ if met + unmeasured < needed => Some(false),
            _ => None,
        };
        let explanation = must.explanation.clone();
        Self {
            text: must.text.clone(),
            explanation: explanation.filter(|_| holds == Some(false)),
            claim,
            holds,
            of,
            met,
            needed,
            better: sure(|[low, _]| low > 0.0),
            worse: sure(|[_, high]| high < 0.0),
            incomplete: covered.iter().filter(is_short).count(),
            unmeasured,
            violations,
        }
    }

    /// `holds`, `does not hold` or `not known`.
    pub const fn verdict(&self) -> &'static str {
        match self.holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not known",
        }
    }

    /// The number of comparisons that meet the claim, and their confidence, as text.
    pub fn tally(&self) -> String {
        let mut text = format!("in {} of {} comparisons", self.met, self.of);
        if matches!(
            self.claim,
            Claim::ReachesPublishedIn(_) | Claim::BetterIn(_) | Claim::IdealRatioAtMost(_)
        ) {
            text.push_str(&format!(" ({} needed)", self.needed));
        }
        text.push_str(&format!(
            "; better with 95 % confidence in {}, worse in {}",
            self.better, self.worse
        ));
        if self.unmeasured > 0 {
            text.push_str(&format!("; not measured in {}", self.unmeasured));
        }
        if self.incomplete > 0 {
            text.push_str(&format!("; runs are missing in {}", self.incomplete));
        }
        text
    }
}

/// Violations shown on a terminal.
const SHOWN: usize = 12;

/// Lines for a terminal: the verdict, the counts, and the violations.
impl fmt::Display for MustResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.verdict(), self.text)?;
        writeln!(f, "  {}", self.tally())?;
        if let Some(explanation) = &self.explanation {
            writeln!(f, "  {explanation}")?;
        }
        for result in self.violations.iter().take(SHOWN) {
            writeln!(f, "  not met by {}", compared(result))?;
        }
        match self.violations.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and not met in {more} more comparisons"),
        }
    }
}

/// A comparison, as `bundle at loss=1%: the median of completion_s is 3.1 % better than that of single (95 % interval: -2.0
/// to 6.0 %; published: 37.9 % better)`.
fn compared(result: &ComparisonResult) -> String {
    let mut text = result.a.clone();
    let at = at(&result.parameters);
    if !at.is_empty() {
        text += &format!(" at {at}");
    }
    text += &format!(": the {} of {} is", result.statistic, result.metric);
    let percent = result.improvement_percent.unwrap_or_default();
    let is_worse = percent < 0.0;
    let relation = if is_worse { "worse" } else { "better" };
    text += &format!(
        " {:.1} % {relation} than that of {}",
        percent.abs(),
        result.b
    );
    let mut beside = Vec::new();
    if let Some([low, high]) = result.ci95 {
        let [low, high] = if is_worse { [-high, -low] } else { [low, high] };
        beside.push(format!("95 % interval: {low:.1} to {high:.1} %"));
    }
    if let Some(percent) = result.published_percent {
        let relation = if percent < 0.0 { "worse" } else { "better" };
        beside.push(format!("published: {:.1} % {relation}", percent.abs()));
    }
    if !beside.is_empty() {
        text += &format!(" ({})", beside.join("; "));
    }
    text
}

/// A point, as `loss=1% size=500`.
pub(super) fn at(parameters: &BTreeMap<String, Value>) -> String {
    let words = parameters.iter().map(|(key, value)| match value {
        Value::String(text) => format!("{key}={text}"),
        value => format!("{key}={value}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
