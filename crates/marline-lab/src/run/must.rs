//! Verdicts: whether results meet an experiment's claims.

mod evidence;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use self::evidence::{Answer, Evidence, ONE_SIDE, remaining};
use super::ComparisonResult;
use crate::scenario::{Claim, Must, Value};

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Verdict {
    /// Enough comparisons meet it, each with its whole 95 % interval.
    #[serde(rename = "holds")]
    Holds,
    /// So many do not meet it, each with its whole interval, that the others are too few.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// Neither: more repeats would decide.
    #[serde(rename = "undecided")]
    Undecided,
    /// It depends on values that were not measured.
    #[serde(rename = "not known")]
    NotKnown,
}

impl Verdict {
    /// The verdict in words, as in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
            Self::NotKnown => "not known",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The verdict if the many comparisons of a claim are taken into account: among those that are taken to meet it, or not to
/// meet it, at most 2.5 % are so by chance (false discovery rate; Benjamini and Hochberg, 1995).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Corrected {
    /// The verdict.
    pub verdict: Verdict,
    /// Comparisons that meet it.
    pub met: usize,
    /// Comparisons that do not.
    pub not_met: usize,
    /// Comparisons in which the first variant is better.
    pub better: usize,
    /// Comparisons in which it is worse.
    pub worse: usize,
}

/// The verdict on a claim, with the comparisons that it depends on.
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
    /// The difference that does not count against it, in percent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub margin_percent: f64,
    /// The verdict, by the intervals of the comparisons.
    pub verdict: Verdict,
    /// Whether the verdict is that it holds.
    pub holds: bool,
    /// The verdict with a correction for many comparisons.
    pub corrected: Corrected,
    /// Comparisons that it covers.
    pub of: usize,
    /// Comparisons that meet it, with their whole 95 % intervals.
    pub met: usize,
    /// Comparisons whose measured value meets it, whatever their interval is.
    pub met_by_value: usize,
    /// Comparisons required to meet it.
    pub needed: usize,
    /// Comparisons in which the first variant is better with 95 % confidence, by [`ComparisonResult::sure_interval`].
    pub better: usize,
    /// Comparisons in which it is worse with 95 % confidence.
    pub worse: usize,
    /// The expected number of `better`, of `worse`, of `met` and of `violations` if chance alone decided: 2.5 % of all.
    pub by_chance: f64,
    /// Comparisons in which not every repeat has a valid pair.
    pub incomplete: usize,
    /// Comparisons without a measured improvement.
    pub unmeasured: usize,
    /// Comparisons that do not meet it, with their whole intervals.
    pub violations: Vec<ComparisonResult>,
    /// Comparisons whose intervals do not decide.
    pub open: Vec<ComparisonResult>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(percent: &f64) -> bool {
    *percent == 0.0
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

/// Numbers of comparisons of a claim.
#[derive(Clone, Copy)]
struct Counts {
    of: usize,
    met: usize,
    not_met: usize,
    unmeasured: usize,
    needed: usize,
}

impl Counts {
    const fn verdict(self) -> Verdict {
        match self {
            Self { of: 0, .. } => Verdict::NotKnown,
            Self { met, needed, .. } if met >= needed => Verdict::Holds,
            // Even if all others met the claim, they would be too few.
            Self {
                of,
                not_met,
                needed,
                ..
            } if of - not_met < needed => Verdict::DoesNotHold,
            Self { unmeasured: 0, .. } => Verdict::Undecided,
            _ => Verdict::NotKnown,
        }
    }
}

impl MustResult {
    /// Checks the claim of `must` against `covered` comparisons, each of which has `repeats` pairs if all runs count.
    pub(super) fn judge(must: &Must, covered: &[Covered<'_>], repeats: u32) -> Self {
        let claim = must.claim;
        let margin = must.margin_percent;
        let covered: Vec<_> = covered.iter().filter(|one| one.counts(claim)).collect();
        let measured: Vec<_> = covered.iter().filter(|one| one.is_measured()).collect();
        let (mut violations, mut open) = (Vec::new(), Vec::new());
        let mut evidence = Vec::new();
        for one in &measured {
            let found = Evidence::of(claim, margin, one.result, one.gain);
            match found.answer {
                Answer::Met => {}
                Answer::NotMet => violations.push(one.result.clone()),
                Answer::Open => open.push(one.result.clone()),
            }
            evidence.push(found);
        }
        let by_value = measured.iter().filter(|one| {
            let percent = one.result.improvement_percent;
            percent.is_some_and(|percent| claim.is_met(percent + margin, one.measure()))
        });
        let is_better: Vec<_> = covered
            .iter()
            .map(|one| Evidence::of_better(one.result))
            .collect();
        let sure = |is: fn([f64; 2]) -> bool| {
            let intervals = covered.iter().filter_map(|one| one.result.sure_interval());
            intervals.filter(|interval| is(*interval)).count()
        };
        let corrected = |evidence: &[Evidence], p: fn(&Evidence) -> f64| {
            remaining(evidence.iter().map(p).collect(), ONE_SIDE)
        };
        let of = covered.len();
        let counts = Counts {
            of,
            met: measured.len() - violations.len() - open.len(),
            not_met: violations.len(),
            unmeasured: of - measured.len(),
            needed: claim.needed(of),
        };
        let with_correction = Counts {
            met: corrected(&evidence, |found| found.p_met),
            not_met: corrected(&evidence, |found| found.p_not_met),
            ..counts
        };
        let verdict = counts.verdict();
        let is_short = |one: &&&Covered<'_>| one.result.pairs < repeats as usize;
        let explanation = must.explanation.clone();
        Self {
            text: must.text.clone(),
            explanation: explanation.filter(|_| verdict == Verdict::DoesNotHold),
            claim,
            margin_percent: margin,
            verdict,
            holds: verdict == Verdict::Holds,
            corrected: Corrected {
                verdict: with_correction.verdict(),
                met: with_correction.met,
                not_met: with_correction.not_met,
                better: corrected(&is_better, |found| found.p_met),
                worse: corrected(&is_better, |found| found.p_not_met),
            },
            of,
            met: counts.met,
            met_by_value: by_value.count(),
            needed: counts.needed,
            better: sure(|[low, _]| low > 0.0),
            worse: sure(|[_, high]| high < 0.0),
            by_chance: of as f64 * ONE_SIDE,
            incomplete: covered.iter().filter(is_short).count(),
            unmeasured: counts.unmeasured,
            violations,
            open,
        }
    }

    /// The number of comparisons that meet the claim, and their confidence, as text.
    pub fn tally(&self) -> String {
        let mut text = format!("met in {} of {} comparisons", self.met, self.of);
        if self.needed < self.of {
            text.push_str(&format!(" ({} needed)", self.needed));
        }
        text.push_str(&format!(
            ", not met in {}, undecided in {} (by value alone, met in {})",
            self.violations.len(),
            self.open.len(),
            self.met_by_value
        ));
        text.push_str(&format!(
            "; better with 95 % confidence in {}, worse in {}, where chance alone would give {} of each",
            self.better,
            self.worse,
            one_decimal(self.by_chance)
        ));
        let corrected = &self.corrected;
        text.push_str(&format!(
            "; corrected for {} comparisons it {}: met in {}, not met in {}, better in {}, worse in {}",
            self.of,
            match corrected.verdict {
                Verdict::Holds => "holds",
                Verdict::DoesNotHold => "does not hold",
                Verdict::Undecided => "is undecided",
                Verdict::NotKnown => "is not known",
            },
            corrected.met,
            corrected.not_met,
            corrected.better,
            corrected.worse
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

/// A number with one decimal, if it has any: 5, 0.6.
fn one_decimal(number: f64) -> String {
    let tenths = (number * 10.0).round() / 10.0;
    format!("{tenths}")
}

/// Comparisons of each kind shown on a terminal.
const SHOWN: usize = 12;

/// Lines for a terminal: the verdict, the counts, and the comparisons that do not meet it.
impl fmt::Display for MustResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.verdict, self.text)?;
        writeln!(f, "  {}", self.tally())?;
        if let Some(explanation) = &self.explanation {
            writeln!(f, "  {explanation}")?;
        }
        for result in self.violations.iter().take(SHOWN) {
            writeln!(f, "  not met by {}", compared(result))?;
        }
        match self.violations.len().saturating_sub(SHOWN) {
            0 => {}
            more => writeln!(f, "  and not met in {more} more comparisons")?,
        }
        for result in self.open.iter().take(SHOWN) {
            writeln!(f, "  undecided for {}", compared(result))?;
        }
        match self.open.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "  and undecided in {more} more comparisons"),
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
    if result.deterministic {
        beside.push("deterministic".to_owned());
    } else if let Some([low, high]) = result.sure_interval() {
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
