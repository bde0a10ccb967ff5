//! Reads `[[must]]`: the claims about comparisons.

use super::condition::Condition;
use super::variants::{VariantPair, one_variant};
use super::{Node, Place, Problem, Reader};
use crate::scenario::Claim;
use crate::stats::Statistic;

/// A claim, and the comparisons that it covers.
pub(in crate::scenario) struct MustEntry {
    pub(in crate::scenario) place: Place,
    pub(in crate::scenario) text: String,
    pub(in crate::scenario) explanation: Option<String>,
    /// The pairs of variants that it covers.
    pub(in crate::scenario) pairs: Vec<VariantPair>,
    pub(in crate::scenario) metric: String,
    pub(in crate::scenario) statistics: Vec<Statistic>,
    /// The selected points.
    pub(in crate::scenario) condition: Condition,
    pub(in crate::scenario) filter: Option<PublishedFilter>,
    pub(in crate::scenario) claim: Claim,
    /// The difference that does not count against it, in percent.
    pub(in crate::scenario) margin_percent: f64,
    /// The variant whose improvement is to be kept, for [`Claim::KeepsPartOfGain`].
    pub(in crate::scenario) gain_of: Option<String>,
    /// The pairs whose order each of `pairs` is to have, for [`Claim::RanksAs`]; otherwise empty.
    pub(in crate::scenario) order_of: Vec<VariantPair>,
}

/// Selects comparisons by their published improvement.
pub(in crate::scenario) struct PublishedFilter {
    pub(in crate::scenario) range: Filter,
    /// Its place.
    pub(in crate::scenario) place: Place,
}

/// A range of published improvements, in percent.
#[derive(Clone, Copy, Debug)]
pub(in crate::scenario) enum Filter {
    /// More than this, in percent.
    Above(f64),
    /// This or more, in percent.
    AtLeast(f64),
}

/// The keys of claims.
const CLAIMS: &str = "at_least_percent, median_at_least_percent, reaches_published_in, better_in, \
                      never_worse_than_percent, keeps_part_of_gain, ranks_as, ideal_ratio_at_most, reaches_value";

pub(super) fn read_musts<'n>(
    nodes: impl Iterator<Item = &'n Node>,
    variants: &[&str],
    metric: &str,
) -> Result<Vec<MustEntry>, Problem> {
    let mut entries: Vec<MustEntry> = Vec::new();
    for node in nodes {
        let entry = read_must(node, variants, metric)?;
        // A verdict is identified by the text of its claim.
        if entries.iter().any(|other| other.text == entry.text) {
            return Err(node.problem("another [[must]] has the same text; give it another one"));
        }
        entries.push(entry);
    }
    Ok(entries)
}

fn read_must(node: &Node, variants: &[&str], metric: &str) -> Result<MustEntry, Problem> {
    let mut reader = Reader::of(node)?;
    let statistics = reader.optional("statistic", |node| {
        let members = node.members().iter();
        members
            .map(|node| node.named("statistic", &Statistic::COMPARED))
            .collect::<Result<Vec<_>, _>>()
    })?;
    let condition = Condition::read(&mut reader)?;
    let text = reader.required("text", "text = \"what must be shown\"", |node| {
        Ok(on_one_line(&node.text()?))
    })?;
    let explanation = reader.optional("explanation", |node| Ok(on_one_line(&node.text()?)))?;
    let metric = reader
        .optional("metric", Node::text)?
        .unwrap_or_else(|| metric.to_owned());
    let filter = read_filter(&mut reader)?;
    let claim = read_claim(&mut reader)?;
    let margin_percent = read_margin(&mut reader, claim)?;
    let pairs = match claim {
        Some(claim) if claim.is_of_one() => read_alone(&mut reader, claim, variants)?,
        _ => read_pairs(&mut reader, variants)?,
    };
    let gain_of = read_gain_of(&mut reader, claim, variants)?;
    let order_of = read_order_of(&mut reader, pairs.len(), variants)?;
    // Unknown keys come first: a misspelled claim is not a missing one.
    reader.finish()?;
    let missing = || node.problem(format_args!("it claims nothing; add one of {CLAIMS}"));
    Ok(MustEntry {
        place: node.place.clone(),
        text,
        explanation,
        pairs,
        metric,
        statistics: statistics
            .filter(|statistics| !statistics.is_empty())
            .unwrap_or_else(|| vec![Statistic::Median]),
        condition,
        filter,
        claim: claim.ok_or_else(missing)?,
        margin_percent,
        gain_of,
        order_of,
    })
}

fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `a` and `b`: one of each, the same number of each, or several `a` and one `b`.
fn read_pairs(reader: &mut Reader<'_>, variants: &[&str]) -> Result<Vec<VariantPair>, Problem> {
    let names = |node: &Node| {
        let members = node.members().iter();
        members.map(|node| one_variant(node, variants)).collect()
    };
    let better: Vec<String> =
        reader.required("a", "a = \"the variant that should be better\"", names)?;
    let worse: Vec<String> =
        reader.required("b", "b = \"the variant to compare with\"", |node| {
            let worse: Vec<_> = names(node)?;
            match worse.len() {
                1 => Ok(vec![worse[0].clone(); better.len()]),
                count if count == better.len() => Ok(worse),
                count => Err(node.problem(format_args!(
                    "a has {} variants, this has {count}; name one, or one for each",
                    better.len()
                ))),
            }
        })?;
    let pair = |(a, b)| VariantPair { a, b };
    match better.is_empty() {
        true => Err(reader.problem("a is empty; name a variant")),
        false => Ok(better.into_iter().zip(worse).map(pair).collect()),
    }
}

/// `a` without `b`: single variants.
fn read_alone(
    reader: &mut Reader<'_>,
    claim: Claim,
    variants: &[&str],
) -> Result<Vec<VariantPair>, Problem> {
    let (without, why): (&[_], _) = match claim {
        Claim::IdealRatioAtMost(_) => (
            &[
                "b",
                "metric",
                "statistic",
                "published_above_percent",
                "published_at_least_percent",
            ],
            "ideal_ratio_at_most compares the median of the first metric with the ideal; leave this out",
        ),
        _ => (
            &["b", "published_above_percent", "published_at_least_percent"],
            "reaches_value compares each of a with the value; leave this out",
        ),
    };
    for key in without {
        if let Some(node) = reader.get(key) {
            return Err(node.problem(why));
        }
    }
    let names = |node: &Node| {
        let members = node.members().iter();
        members.map(|node| one_variant(node, variants)).collect()
    };
    let alone: Vec<String> =
        reader.required("a", "a = \"the variant that should reach it\"", names)?;
    let pair = |a| VariantPair {
        a,
        b: String::new(),
    };
    match alone.is_empty() {
        true => Err(reader.problem("a is empty; name a variant")),
        false => Ok(alone.into_iter().map(pair).collect()),
    }
}

fn read_filter(reader: &mut Reader<'_>) -> Result<Option<PublishedFilter>, Problem> {
    let above = reader.get("published_above_percent");
    let at_least = reader.get("published_at_least_percent");
    let filter = |range, node: &Node| {
        let place = node.place.clone();
        Ok(Some(PublishedFilter { range, place }))
    };
    match (above, at_least) {
        (Some(_), Some(node)) => {
            Err(node.problem("there is published_above_percent too; keep one of them"))
        }
        (Some(node), None) => filter(Filter::Above(node.number()?), node),
        (None, Some(node)) => filter(Filter::AtLeast(node.number()?), node),
        (None, None) => Ok(None),
    }
}

/// The margin of `claim`, in percent; 0 if it is absent.
fn read_margin(reader: &mut Reader<'_>, claim: Option<Claim>) -> Result<f64, Problem> {
    let Some(node) = reader.get("margin_percent") else {
        return Ok(0.0);
    };
    if let Some(Claim::NeverWorseThanPercent(_) | Claim::RanksAs | Claim::IdealRatioAtMost(_)) =
        claim
    {
        return Err(node.problem(
            "never_worse_than_percent and ideal_ratio_at_most are margins themselves, and ranks_as has none; leave this out",
        ));
    }
    match node.number()? {
        percent if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(node.problem("this must be from 0 to below 100, in percent")),
    }
}

/// The variant whose improvement is to be kept: set exactly if `claim` needs one.
fn read_gain_of(
    reader: &mut Reader<'_>,
    claim: Option<Claim>,
    variants: &[&str],
) -> Result<Option<String>, Problem> {
    let name = |node: &Node| one_variant(node, variants);
    match (claim, reader.get("gain_of")) {
        (Some(Claim::KeepsPartOfGain(_)), _) => reader
            .required("gain_of", "gain_of = \"the variant that gains\"", name)
            .map(Some),
        (_, Some(node)) => {
            Err(node.problem("this is for keeps_part_of_gain; add that, or leave it out"))
        }
        (_, None) => Ok(None),
    }
}

/// The pairs of `ranks_as`, one for each of `count`; none if it is absent.
fn read_order_of(
    reader: &mut Reader<'_>,
    count: usize,
    variants: &[&str],
) -> Result<Vec<VariantPair>, Problem> {
    let Some(node) = reader.get("ranks_as") else {
        return Ok(Vec::new());
    };
    let pairs: Vec<_> = node.members().iter().map(Node::members).collect();
    if pairs.len() != count || pairs.iter().any(|pair| pair.len() != 2) {
        return Err(node.problem(format_args!(
            "this must be {count} pairs of variants, one for each a, as [[\"h1\", \"h2\"]]"
        )));
    }
    let name = |node: &Node| one_variant(node, variants);
    let pair = |pair: &[Node]| {
        Ok(VariantPair {
            a: name(&pair[0])?,
            b: name(&pair[1])?,
        })
    };
    pairs.into_iter().map(pair).collect()
}

/// The claim, if any.
fn read_claim(reader: &mut Reader<'_>) -> Result<Option<Claim>, Problem> {
    let at_least = reader.get("at_least_percent");
    let median = reader.get("median_at_least_percent");
    let reaches = reader.get("reaches_published_in");
    let better = reader.get("better_in");
    let worse = reader.get("never_worse_than_percent");
    let keeps = reader.get("keeps_part_of_gain");
    let ranks = reader.get("ranks_as");
    let ideal = reader.get("ideal_ratio_at_most");
    let value = reader.get("reaches_value");
    let mut claims = Vec::new();
    let gain = |node: &Node| match node.number()? {
        percent if (0.0..100.0).contains(&percent) => Ok(percent),
        _ => Err(node
            .problem("this must be from 0 to below 100; never_worse_than_percent allows a loss")),
    };
    if let Some(node) = at_least {
        claims.push((node, Claim::AtLeastPercent(gain(node)?)));
    }
    if let Some(node) = median {
        claims.push((node, Claim::MedianAtLeastPercent(gain(node)?)));
    }
    let part = |node: &Node| match node.number()? {
        part if part > 0.0 && part <= 1.0 => Ok(part),
        _ => Err(node.problem("this must be above 0 and at most 1, as 0.5 for half")),
    };
    if let Some(node) = reaches {
        claims.push((node, Claim::ReachesPublishedIn(part(node)?)));
    }
    if let Some(node) = better {
        claims.push((node, Claim::BetterIn(part(node)?)));
    }
    if let Some(node) = worse {
        let percent = node.number()?;
        if percent < 0.0 {
            return Err(node.problem("this must not be below 0; at_least_percent requires a gain"));
        }
        claims.push((node, Claim::NeverWorseThanPercent(percent)));
    }
    if let Some(node) = keeps {
        claims.push((node, Claim::KeepsPartOfGain(part(node)?)));
    }
    if let Some(node) = ranks {
        claims.push((node, Claim::RanksAs));
    }
    if let Some(node) = ideal {
        let most = node.number()?;
        if most < 1.0 {
            return Err(node.problem("nothing is below the ideal: this must be 1 or more"));
        }
        claims.push((node, Claim::IdealRatioAtMost(most)));
    }
    if let Some(node) = value {
        let value = node.number()?;
        if value <= 0.0 {
            return Err(node.problem("this must be above 0"));
        }
        claims.push((node, Claim::ReachesValue(value)));
    }
    match claims[..] {
        [] => Ok(None),
        [(_, claim)] => Ok(Some(claim)),
        [_, (node, _), ..] => {
            Err(node.problem("there is another claim already; write a [[must]] for each"))
        }
    }
}
