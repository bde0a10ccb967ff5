//! An experiment, read from a file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marline::settings::is_key;
use marline_report::input;
use serde::{Deserialize, Serialize};

use super::choose::Points;
use super::comparison::{self, Comparison};
use super::correlation::{self, Correlation};
use super::document::{Node, Table, parse};
use super::embedded::{self, TABLES};
use super::error::{Place, Problem};
use super::keys::EXPERIMENT_KEYS;
use super::metrics;
use super::must::{self, Must};
use super::overrides::{Override, apply_all, refuse_twice_in_ends, take_apart};
use super::published::look_up;
use super::read::{Head, VariantEntry, read_head, read_settings};
use super::replaced;
use super::{ScenarioError, Settings, Source, Value, sweep};
use crate::stats::Statistic;

/// An experiment: its variants, points and repeats, and the published values.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name on command lines: the path below `experiments/` without `.toml`.
    pub id: String,
    /// A title of a few words.
    pub title: String,
    /// The paper it repeats, by number.
    pub paper: Option<String>,
    /// Section, table or figure of the paper.
    pub section: Option<String>,
    /// The subject of its demonstration.
    pub shows: Option<String>,
    /// The backend, unless a variant sets another.
    pub backend: BackendKind,
    /// The seed of all randomness.
    pub seed: u64,
    /// Repeats of each variant at each point.
    pub repeats: u32,
    /// Repeats in a quick run.
    pub quick_repeats: u32,
    /// Metrics shown in reports; the first is the main one.
    pub metrics: Vec<String>,
    /// Names of the variants, in the order of the file.
    pub variants: Vec<Arc<str>>,
    /// Points of the sweep; one without parameters if there is no sweep.
    pub points: Vec<Arc<BTreeMap<String, Value>>>,
    /// Every variant at every point: the variants of the first point, of the second, and so on.
    pub cells: Vec<Cell>,
    /// Pairs of variants to compare at every point.
    pub comparisons: Vec<Comparison>,
    /// Published values, shown next to the measured ones.
    pub published: Vec<Published>,
    /// Metrics to correlate.
    pub correlations: Vec<Correlation>,
    /// Claims about the comparisons.
    pub musts: Vec<Must>,
    /// The file's content, overrides included, for reports.
    pub document: Value,
    /// The overrides, as `KEY=VALUE`.
    pub sets: Vec<String>,
    /// The source of the experiment.
    pub source: Arc<Source>,
    /// The command that repeats all runs, for reports, if it is not `marline lab run`.
    pub command: Option<String>,
}

/// A variant at a point.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The variant's name.
    pub variant: Arc<str>,
    /// The point.
    pub parameters: Arc<BTreeMap<String, Value>>,
    /// The settings of its runs.
    pub settings: Arc<Settings>,
    /// Whether the variant or the point names the backend.
    pub own_backend: bool,
}

/// A published value of one variant at one point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// The variant.
    pub variant: String,
    /// The point, as an index into [`Experiment::points`].
    pub point: usize,
    /// The metric.
    pub metric: String,
    /// The statistic of the metric.
    pub statistic: Statistic,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Its source.
    pub source: String,
}

/// The backends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BackendKind {
    /// In virtual time.
    #[default]
    Sim,
    /// In real time, between network namespaces.
    Emu,
    /// Between network namespaces of a kernel of its own, in virtual time.
    Kernel,
}

impl BackendKind {
    /// Every backend, with its name in scenarios and on command lines.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("sim", Self::Sim),
        ("emu", Self::Emu),
        ("kernel", Self::Kernel),
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Emu => "emu",
            Self::Kernel => "kernel",
        }
    }

    /// Whether its runs are in virtual time, in which computing takes no time and parallel runs do not affect each
    /// other.
    pub const fn is_virtual(self) -> bool {
        !matches!(self, Self::Emu)
    }

    /// Whether all backends of `names`, as [`Experiment::backends`] writes them, are in virtual time.
    pub fn are_virtual(names: &str) -> bool {
        let is_virtual = |name: &str| {
            Self::NAMES
                .iter()
                .any(|(known, kind)| *known == name && kind.is_virtual())
        };
        names.split('+').all(is_virtual)
    }
}

/// Largest size of a scenario in bytes; the largest of this repository has some KiB.
const MAX_FILE: u64 = 4 << 20;

/// Largest number of cells. Each has settings of its own.
const MAX_CELLS: usize = 100_000;

impl Experiment {
    /// Reads the experiment in `path`. `sets` are overrides as `KEY=VALUE`.
    pub fn load(path: &Path, id: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = input::read_text(path, MAX_FILE).map_err(|error| {
            let problem = format!("cannot read it: {error}; see `marline lab list`");
            Problem::new(&Place::File, problem).in_file(&file)
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        read(Source::new(&text, id, sets, Some(directory), &file))
            .map_err(|problem| problem.in_file(&file))
    }

    /// Reads the [embedded](super::embedded()) experiment `id`. `sets` are overrides as `KEY=VALUE`.
    ///
    /// # Errors
    /// There is none of this name, or as [`load`](Self::load).
    pub fn load_embedded(id: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        let text = embedded::experiment(id).ok_or_else(|| {
            Problem::new(
                &Place::File,
                "there is no such experiment; see `marline lab list`",
            )
        });
        text.and_then(|text| read(Source::new(text, id, sets, None, id)))
            .map_err(|problem| problem.in_file(id))
    }

    /// Parses an experiment from `text`; errors name it `file`. Published tables are searched in the working
    /// directory.
    pub fn parse(text: &str, file: &str, sets: &[String]) -> Result<Self, ScenarioError> {
        let id = Path::new(file).file_stem().unwrap_or_default();
        let id = id.to_string_lossy();
        let source = Source::new(text, &id, sets, Some(Path::new("")), file);
        read(source).map_err(|problem| problem.in_file(file))
    }

    /// Sets the backend of all cells that do not name their own to `backend`, which overrides the scenario: an
    /// experiment that compares backends still does.
    pub fn run_in(&mut self, backend: BackendKind) {
        self.backend = backend;
        for cell in self.cells.iter_mut().filter(|cell| !cell.own_backend) {
            Arc::make_mut(&mut cell.settings).run_in(backend);
        }
    }

    /// Whether any variant runs in `backend`.
    pub fn uses(&self, backend: BackendKind) -> bool {
        self.cells
            .iter()
            .any(|cell| cell.settings.backend == backend)
    }

    /// The names of all backends in use, as in `sim+emu`.
    pub fn backends(&self) -> String {
        let used = BackendKind::NAMES
            .iter()
            .filter(|(_, backend)| self.uses(*backend));
        let names: Vec<_> = used.map(|(name, _)| *name).collect();
        names.join("+")
    }

    /// The point of the cell at `index`.
    pub fn point_of(&self, index: usize) -> usize {
        index / self.variants.len().max(1)
    }
}

/// An experiment's file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// Its name: the path below the directory, without `.toml`.
    pub id: String,
    /// The file.
    pub path: PathBuf,
}

/// All experiments in `directory` and below, by name. Directories named `published` hold tables.
pub fn list(directory: &Path) -> std::io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    collect(directory, "", &mut entries)?;
    entries.sort();
    Ok(entries)
}

fn collect(directory: &Path, prefix: &str, entries: &mut Vec<Entry>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == TABLES {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{prefix}{name}/"), entries)?;
        } else if let Some(name) = name.strip_suffix(".toml") {
            entries.push(Entry {
                id: format!("{prefix}{name}"),
                path: entry.path(),
            });
        }
    }
    Ok(())
}

/// An experiment whose cells are not read yet.
struct Outline {
    root: Table,
    sets: Vec<Override>,
    head: Head,
    points: Vec<sweep::Choice>,
    /// The directory of the file, to which the files it names are relative.
    directory: Option<PathBuf>,
}

impl Outline {
    fn read(source: &Source) -> Result<Self, Problem> {
        let mut root = parse(source.text())?;
        let sets: Vec<_> = source
            .sets()
            .iter()
            .map(|set| Override::parse(set))
            .collect::<Result<_, _>>()?;
        refuse_twice_in_ends(&root)?;
        take_apart(&mut root)?;
        apply_all(&mut root, &sets)?;
        let head = read_head(&root)?;
        let points = sweep::points(&head.sweep);
        Ok(Self {
            root,
            sets,
            head,
            points,
            directory: source.directory().map(Path::to_owned),
        })
    }

    /// The settings of a variant at a point.
    fn settings(&self, variant: &VariantEntry, point: &sweep::Choice) -> Result<Settings, Problem> {
        let all = [&variant.overrides, &point.overrides, &self.sets[..]].concat();
        let mut document = self.root.clone();
        apply_all(&mut document, &all)?;
        let mut settings = read_settings(&document)?;
        if let Some(directory) = &self.directory {
            settings.find_files_from(directory);
        }
        settings.begin_traces_at_random();
        Ok(settings)
    }
}

/// The settings of a variant at the point with these parameters; `None` if there is none.
pub(super) fn read_cell(
    source: &Source,
    variant: &str,
    parameters: &BTreeMap<String, Value>,
) -> Result<Option<Settings>, Problem> {
    let outline = Outline::read(source)?;
    let mut variants = outline.head.variants.iter();
    let variant = variants.find(|entry| entry.name == variant);
    let mut points = outline.points.iter();
    let point = points.find(|point| *parameters == point.by_name());
    let cell = variant.zip(point);
    cell.map(|(variant, point)| outline.settings(variant, point))
        .transpose()
}

fn read(source: Source) -> Result<Experiment, Problem> {
    let outline = Outline::read(&source)?;
    let Outline {
        root,
        sets,
        head,
        points,
        ..
    } = &outline;
    if let Some((written, place)) = &head.id
        && written != source.id()
    {
        let id = source.id();
        let text = format!("the file's name makes this experiment \"{id}\"; rename one of them");
        return Err(Problem::new(place, text));
    }
    refuse_invalid_replaced(root, head, points)?;
    if points.len().saturating_mul(head.variants.len()) > MAX_CELLS {
        let text = format!(
            "the variants at all points are more than {MAX_CELLS}; leave variants or points out"
        );
        return Err(Problem::new(&Place::File, text));
    }
    let mut cells = Vec::new();
    for point in points {
        let parameters = Arc::new(point.by_name());
        for variant in &head.variants {
            let VariantEntry { name, overrides } = variant;
            refuse_collisions(name, overrides, &point.overrides, sets)?;
            refuse_keys_of_experiment(overrides.iter().chain(&point.overrides))?;
            cells.push(Cell {
                variant: Arc::from(name.as_str()),
                parameters: Arc::clone(&parameters),
                settings: Arc::new(outline.settings(variant, point)?),
                own_backend: overrides
                    .iter()
                    .chain(&point.overrides)
                    .any(|change| change.path == ["backend"]),
            });
        }
    }
    let settings = cells.iter().map(|cell| &*cell.settings);
    metrics::check(root, &head.metrics, settings)?;
    assemble(source, outline, cells)
}

/// Checks the values that each variant replaces, at the first point.
fn refuse_invalid_replaced(
    root: &Table,
    head: &Head,
    points: &[sweep::Choice],
) -> Result<(), Problem> {
    let first = points.first().map_or(&[][..], |point| &point.overrides);
    head.variants.iter().try_for_each(|variant| {
        let all = [&variant.overrides[..], first].concat();
        replaced::refuse_invalid(root, &all)
    })
}

/// Variants and points replace what a run does, and nothing else.
fn refuse_keys_of_experiment<'a>(
    mut replaced: impl Iterator<Item = &'a Override>,
) -> Result<(), Problem> {
    let is_of_experiment = |change: &&Override| {
        let first = change.path.first();
        first.is_some_and(|first| EXPERIMENT_KEYS.iter().any(|key| is_key(first, key)))
    };
    match replaced.find(is_of_experiment) {
        Some(change) => Err(change.node.problem(format_args!(
            "{} is of the whole experiment; set it at the top of the file",
            change.key()
        ))),
        None => Ok(()),
    }
}

/// A key must not be set both by a variant and by the sweep: one name would hide the value of the other.
fn refuse_collisions(
    variant: &str,
    variants: &[Override],
    points: &[Override],
    sets: &[Override],
) -> Result<(), Problem> {
    for point in points {
        if variants.iter().any(|change| change.path == point.path) {
            return Err(point.node.problem(format_args!(
                "variant {variant} sets {} too; keep one of them",
                point.key()
            )));
        }
    }
    for set in sets {
        let varied = |change: &&Override| change.path.starts_with(&set.path);
        if let Some(change) = variants.iter().chain(points).find(varied) {
            return Err(set.node.problem(format_args!(
                "variants or the sweep set {}; change it there",
                change.key()
            )));
        }
    }
    Ok(())
}

fn assemble(source: Source, outline: Outline, cells: Vec<Cell>) -> Result<Experiment, Problem> {
    let Outline {
        root, sets, head, ..
    } = outline;
    let directory = source.directory();
    let points: Vec<_> = cells
        .iter()
        .step_by(head.variants.len().max(1))
        .map(|cell| Arc::clone(&cell.parameters))
        .collect();
    let points = Points::new(points, &sets);
    let mut comparisons = Vec::new();
    for entry in &head.comparisons {
        for one in comparison::expand(entry, directory, &points)? {
            if one.is_among(&comparisons) {
                let Comparison { a, b, .. } = one;
                let text = format!("{a} and {b} are compared at one point twice; leave one out");
                return Err(Problem::new(&entry.place, text));
            }
            comparisons.push(one);
        }
    }
    let mut published = Vec::new();
    for entry in head.published {
        for variant in &entry.variants {
            let values = look_up(
                &entry.lookup,
                directory,
                &[("variant", variant)],
                points.all(),
            )?;
            for (point, value) in values.into_iter().enumerate() {
                published.extend(value.map(|value| Published {
                    variant: variant.clone(),
                    point,
                    metric: entry.metric.clone(),
                    statistic: entry.statistic,
                    value: value * entry.scale,
                    source: entry.lookup.source.clone(),
                }));
            }
        }
    }
    let mut correlations = Vec::new();
    for entry in &head.correlations {
        correlations.extend(correlation::expand(entry, directory, &points)?);
    }
    let musts = head
        .musts
        .iter()
        .map(|entry| must::expand(entry, &comparisons, &points))
        .collect::<Result<_, _>>()?;
    let document = Node {
        place: Place::File,
        item: super::document::Item::Table(root),
    };
    Ok(Experiment {
        id: source.id().to_owned(),
        title: head.title,
        paper: head.paper,
        section: head.section,
        shows: head.shows,
        backend: head.backend,
        seed: head.seed,
        repeats: head.repeats,
        quick_repeats: head.quick_repeats,
        metrics: head.metrics,
        variants: head
            .variants
            .into_iter()
            .map(|variant| Arc::from(variant.name))
            .collect(),
        points: points.all().to_vec(),
        cells,
        comparisons,
        published,
        correlations,
        musts,
        document: document.value(),
        sets: source.sets().to_vec(),
        source: Arc::new(source),
        command: None,
    })
}
