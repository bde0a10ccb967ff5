//! Reads the head of an experiment: everything but the settings of its runs.

use std::collections::{BTreeMap, HashMap};

use super::condition::Condition;
use super::must::{MustEntry, read_musts};
use super::variants::{VariantPair, some_variants, these_variants};
use super::{Item, Node, Place, Problem, Reader, Table};
use crate::scenario::error::quote;
use crate::scenario::overrides::{Override, flatten};
use crate::scenario::sweep::{Factor, read_sweep};
use crate::scenario::{BackendKind, Value};
use crate::stats::Statistic;

/// Default repeats; medians of fewer are unreliable.
const REPEATS: u32 = 30;
/// Default repeats of a quick run.
const QUICK_REPEATS: u32 = 10;
/// Largest number of variants: more are considered a mistake. Each reads a copy of the document.
const MAX_VARIANTS: usize = 1000;

/// All of an experiment except the settings of its runs.
pub(in crate::scenario) struct Head {
    pub(in crate::scenario) id: Option<(String, Place)>,
    pub(in crate::scenario) title: String,
    pub(in crate::scenario) paper: Option<String>,
    pub(in crate::scenario) section: Option<String>,
    pub(in crate::scenario) shows: Option<String>,
    pub(in crate::scenario) backend: BackendKind,
    pub(in crate::scenario) seed: u64,
    pub(in crate::scenario) repeats: u32,
    pub(in crate::scenario) quick_repeats: u32,
    pub(in crate::scenario) metrics: Vec<String>,
    pub(in crate::scenario) variants: Vec<VariantEntry>,
    pub(in crate::scenario) sweep: Vec<Factor>,
    pub(in crate::scenario) comparisons: Vec<ComparisonEntry>,
    pub(in crate::scenario) published: Vec<PublishedEntry>,
    pub(in crate::scenario) correlations: Vec<CorrelationEntry>,
    pub(in crate::scenario) musts: Vec<MustEntry>,
}

/// A variant, and the keys that it sets.
pub(in crate::scenario) struct VariantEntry {
    pub(in crate::scenario) name: String,
    pub(in crate::scenario) overrides: Vec<Override>,
}

/// Variants to compare: each of `a` with each of `b`.
pub(in crate::scenario) struct ComparisonEntry {
    pub(in crate::scenario) place: Place,
    pub(in crate::scenario) a: Vec<String>,
    pub(in crate::scenario) b: Vec<String>,
    /// The selected points.
    pub(in crate::scenario) condition: Condition,
    pub(in crate::scenario) metric: String,
    pub(in crate::scenario) statistics: Vec<Statistic>,
    pub(in crate::scenario) published: Option<Lookup>,
}

/// Published values of variants.
pub(in crate::scenario) struct PublishedEntry {
    pub(in crate::scenario) variants: Vec<String>,
    pub(in crate::scenario) metric: String,
    pub(in crate::scenario) statistic: Statistic,
    pub(in crate::scenario) scale: f64,
    pub(in crate::scenario) lookup: Lookup,
}

/// Two metrics to correlate.
pub(in crate::scenario) struct CorrelationEntry {
    pub(in crate::scenario) variants: Vec<String>,
    /// The selected points.
    pub(in crate::scenario) condition: Condition,
    pub(in crate::scenario) x: String,
    pub(in crate::scenario) y: String,
    pub(in crate::scenario) published: Option<Lookup>,
}

/// A look-up of a published value in a table.
pub(in crate::scenario) struct Lookup {
    pub(in crate::scenario) place: Place,
    pub(in crate::scenario) file: String,
    pub(in crate::scenario) condition: BTreeMap<String, Value>,
    pub(in crate::scenario) value: String,
    pub(in crate::scenario) source: String,
}

const KEYS: [&str; 16] = [
    "id",
    "title",
    "paper",
    "section",
    "shows",
    "backend",
    "seed",
    "repeats",
    "quick_repeats",
    "metrics",
    "variant",
    "sweep",
    "comparison",
    "published",
    "correlation",
    "must",
];

/// Marks the keys of the head as read; [`read_head`] reads them.
pub(super) fn skip_head(reader: &mut Reader<'_>) {
    for key in KEYS {
        reader.get(key);
    }
}

/// Reads the backend, which variants may set.
pub(super) fn read_backend(reader: &mut Reader<'_>) -> Result<BackendKind, Problem> {
    let backend = reader.optional("backend", |node| node.named("backend", &BackendKind::NAMES))?;
    Ok(backend.unwrap_or_default())
}

/// The default metrics, of which the first is the main one: throughput for a workload that never completes.
fn default_metrics(root: &Table) -> &'static [&'static str] {
    let workload = root.inner("workload");
    let has = |kind| workload.is_some_and(|it| it.get(kind).is_some());
    let connections = root.inner("http").and_then(|http| http.get("connections"));
    let is_beside = connections.is_some_and(|node| matches!(node.item, Item::Integer(0)));
    match has("measure") {
        true if is_beside => &["background_goodput_mbps"],
        true => &["goodput_mbps"],
        _ if has("video") => &["video_quality_mbps", "video_stalled_s", "video_startup_s"],
        _ if has("call") => &[
            "call_late_ratio",
            "call_delay_p95_ms",
            "call_longest_freeze_ms",
        ],
        _ if has("devices") => &["page_load_mean_s", "page_load_max_s"],
        _ => &["completion_s"],
    }
}

pub(in crate::scenario) fn read_head(root: &Table) -> Result<Head, Problem> {
    let mut reader = Reader::new(root, &Place::File);
    let count = |node: &Node| Ok(node.within(1..=100_000)? as u32);
    let repeats = reader.optional("repeats", count)?.unwrap_or(REPEATS);
    let metrics = reader.optional("metrics", Node::texts)?;
    let metrics = metrics
        .filter(|metrics| !metrics.is_empty())
        .unwrap_or_else(|| {
            default_metrics(root)
                .iter()
                .map(|&name| name.to_owned())
                .collect()
        });
    let variants = read_variants(reader.get("variant"))?;
    let names: Vec<_> = variants
        .iter()
        .map(|variant| variant.name.as_str())
        .collect();
    let comparisons = members(reader.get("comparison"))
        .map(|node| read_comparison(node, &names, &metrics[0]))
        .collect::<Result<_, _>>()?;
    let published = members(reader.get("published"))
        .map(|node| read_published(node, &names, &metrics[0]))
        .collect::<Result<_, _>>()?;
    let correlations = members(reader.get("correlation"))
        .map(|node| read_correlation(node, &names, &metrics[0]))
        .collect::<Result<_, _>>()?;
    let musts = read_musts(members(reader.get("must")), &names, &metrics[0])?;
    Ok(Head {
        id: reader.optional("id", |node| Ok((node.text()?, node.place.clone())))?,
        title: reader.required("title", "title = \"A download on the train\"", Node::text)?,
        paper: reader.optional("paper", Node::text)?,
        section: reader.optional("section", Node::words)?,
        shows: reader.optional("shows", Node::text)?,
        backend: read_backend(&mut reader)?,
        seed: reader
            .optional("seed", |node| node.within(0..=u64::MAX))?
            .unwrap_or(1),
        repeats,
        quick_repeats: reader
            .optional("quick_repeats", count)?
            .unwrap_or(QUICK_REPEATS.min(repeats)),
        sweep: reader.optional("sweep", read_sweep)?.unwrap_or_default(),
        metrics,
        variants,
        comparisons,
        published,
        correlations,
        musts,
    })
}

/// The members of a list of tables; none without the list.
fn members(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    node.into_iter().flat_map(Node::members)
}

/// Reads the variants; without any, there is one, `base`.
fn read_variants(node: Option<&Node>) -> Result<Vec<VariantEntry>, Problem> {
    let Some(node) = node else {
        return Ok(vec![VariantEntry {
            name: "base".to_owned(),
            overrides: Vec::new(),
        }]);
    };
    let table = Reader::of(node)?.table;
    if table.0.is_empty() {
        return Err(node.problem("there are no variants; add one as [variant.NAME]"));
    }
    if table.0.len() > MAX_VARIANTS {
        return Err(node.problem(format_args!(
            "there are more than {MAX_VARIANTS} variants; leave some out"
        )));
    }
    let mut variants = Vec::new();
    let mut files = HashMap::new();
    for (name, node) in &table.0 {
        if name.is_empty() {
            return Err(node.problem("a variant has a name of a character or more"));
        }
        if let Some(other) = files.insert(file_name(name), name) {
            return Err(node.problem(format_args!(
                "files of \"{}\" would have the names of those of \"{}\"; rename one",
                quote(name),
                quote(other)
            )));
        }
        variants.push(VariantEntry {
            name: name.clone(),
            overrides: flatten(Reader::of(node)?.table)?,
        });
    }
    Ok(variants)
}

/// The name of a variant in names of files.
pub(crate) fn file_name(variant: &str) -> String {
    variant.replace(|c: char| !c.is_alphanumeric(), "-")
}

fn read_comparison(
    node: &Node,
    variants: &[&str],
    metric: &str,
) -> Result<ComparisonEntry, Problem> {
    let mut reader = Reader::of(node)?;
    let variant = |node: &Node| these_variants(node, variants);
    let condition = Condition::read(&mut reader)?;
    let one_statistic = |node: &Node| node.named("statistic", &Statistic::COMPARED);
    let entry = ComparisonEntry {
        place: node.place.clone(),
        a: reader.required("a", "a = \"the variant that should be better\"", variant)?,
        b: reader.required("b", "b = \"the variant to compare with\"", variant)?,
        metric: reader
            .optional("metric", Node::text)?
            .unwrap_or_else(|| metric.to_owned()),
        statistics: reader
            .optional("statistic", |node| {
                let members = node.members().iter();
                members.map(one_statistic).collect::<Result<Vec<_>, _>>()
            })?
            .filter(|statistics| !statistics.is_empty())
            .unwrap_or_else(|| vec![Statistic::Median]),
        condition,
        published: reader.optional("published", read_lookup_alone)?,
    };
    reader.finish()?;
    if entry.pairs().is_empty() {
        return Err(node.problem("a and b are the same; name something to compare it with"));
    }
    Ok(entry)
}

impl ComparisonEntry {
    /// Each of `a` with each of `b`, except with itself.
    pub(in crate::scenario) fn pairs(&self) -> Vec<VariantPair> {
        let with = |a: &String, b: &String| VariantPair {
            a: a.clone(),
            b: b.clone(),
        };
        let all = self
            .a
            .iter()
            .flat_map(move |a| self.b.iter().map(move |b| with(a, b)));
        all.filter(|pair| pair.a != pair.b).collect()
    }
}

fn read_published(node: &Node, variants: &[&str], metric: &str) -> Result<PublishedEntry, Problem> {
    let mut reader = Reader::of(node)?;
    let entry = PublishedEntry {
        variants: some_variants(&mut reader, variants)?,
        metric: reader
            .optional("metric", Node::text)?
            .unwrap_or_else(|| metric.to_owned()),
        statistic: reader
            .optional("statistic", |node| {
                node.named("statistic", &Statistic::NAMES)
            })?
            .unwrap_or(Statistic::Median),
        scale: reader.optional("scale", Node::number)?.unwrap_or(1.0),
        lookup: read_lookup(&mut reader)?,
    };
    reader.finish()?;
    Ok(entry)
}

fn read_correlation(
    node: &Node,
    variants: &[&str],
    metric: &str,
) -> Result<CorrelationEntry, Problem> {
    let mut reader = Reader::of(node)?;
    let condition = Condition::read(&mut reader)?;
    let entry = CorrelationEntry {
        variants: some_variants(&mut reader, variants)?,
        condition,
        x: reader.required("x", "x = \"first_fluctuation_packets\"", Node::text)?,
        y: reader
            .optional("y", Node::text)?
            .unwrap_or_else(|| metric.to_owned()),
        published: reader.optional("published", read_lookup_alone)?,
    };
    reader.finish()?;
    Ok(entry)
}

/// Reads a table that consists of a look-up only.
fn read_lookup_alone(node: &Node) -> Result<Lookup, Problem> {
    let mut reader = Reader::of(node)?;
    let lookup = read_lookup(&mut reader)?;
    reader.finish()?;
    Ok(lookup)
}

fn read_lookup(reader: &mut Reader<'_>) -> Result<Lookup, Problem> {
    let place = reader.place.clone();
    let file = reader.required("file", "file = \"TABLE.csv\"", Node::text)?;
    Ok(Lookup {
        place,
        condition: reader.optional("where", Node::values)?.unwrap_or_default(),
        value: reader.required("value", "value = \"the column\"", Node::text)?,
        source: reader
            .optional("source", Node::text)?
            .unwrap_or_else(|| file.clone()),
        file,
    })
}
