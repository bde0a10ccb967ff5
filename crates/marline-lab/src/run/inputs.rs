//! Inputs of runs besides their settings: the files and programs that they read, and in real time the machine.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::thread;
use std::{env, fs};

use marline_link::spec::DistributionName;
use marline_link::{LinkSpec, Seed};

use super::RunFailure;
use super::digest::Digest;
use crate::execution::files_below;
use crate::scenario::{BackendKind, Experiment, LinkDef, Settings, Source, Workload};

/// A hash of each input's content, or a property of the machine, by a readable name.
pub type Inputs = BTreeMap<String, String>;

/// Properties of this machine, for those who compare results.
pub(super) fn machine() -> BTreeMap<String, String> {
    let cores = thread::available_parallelism().map_or(0, usize::from);
    let facts = [
        ("system", env::consts::OS.to_owned()),
        ("architecture", env::consts::ARCH.to_owned()),
        ("kernel", kernel()),
        ("processors", cores.to_string()),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}

/// The release of the machine's kernel.
fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// The inputs of all runs of `experiment`.
///
/// # Errors
/// One of them cannot be read, so that runs would fail.
pub(super) fn read(experiment: &Experiment) -> Result<Inputs, RunFailure> {
    let mut inputs = Inputs::new();
    let source = &*experiment.source;
    for cell in &experiment.cells {
        add(&mut inputs, &cell.settings, source)?;
    }
    if experiment.uses(BackendKind::Emu) {
        inputs.insert("the machine's kernel".into(), kernel());
        let cores = thread::available_parallelism().map_or(0, usize::from);
        inputs.insert("the machine's processors".into(), cores.to_string());
    }
    #[cfg(target_os = "linux")]
    if experiment.uses(BackendKind::Kernel)
        && let Ok(image) = crate::kernel::Image::find()
    {
        add_file(&mut inputs, "the kernel", image.path(), source)?;
    }
    Ok(inputs)
}

/// The name of a file, from the directory of the experiment if it is below that, wherever that is.
fn named(path: &Path, source: &Source) -> String {
    let directory = source.directory().unwrap_or(Path::new(""));
    path.strip_prefix(directory)
        .unwrap_or(path)
        .display()
        .to_string()
}

/// The problem of a file, with the line of the experiment that names it.
fn unusable(path: &Path, source: &Source, problem: impl Display) -> RunFailure {
    let place = source.place_of(&named(path, source));
    RunFailure::Input {
        problem: format!("{place}: {problem}"),
    }
}

/// The differences between the inputs of earlier runs and the present ones, as text; `None` if there are none.
pub(super) fn difference(before: &Inputs, now: &Inputs) -> Option<String> {
    let names = before
        .keys()
        .chain(now.keys().filter(|name| !before.contains_key(*name)));
    let differ = names.filter(|name| before.get(*name) != now.get(*name));
    let differ: Vec<_> = differ.map(String::as_str).collect();
    (!differ.is_empty()).then(|| differ.join(", "))
}

fn add(inputs: &mut Inputs, settings: &Settings, source: &Source) -> Result<(), RunFailure> {
    let changed = settings.changes.iter().flat_map(|change| &change.links);
    for link in settings.topology.links.iter().chain(changed) {
        let known = inputs.len();
        let files = files(link);
        for file in &files {
            add_file(inputs, file.what, Path::new(&file.path), source)?;
        }
        if inputs.len() > known {
            check_files(link, &files, source)?;
        }
    }
    match &settings.workload {
        Workload::Page { page, .. } | Workload::Devices { page, .. } if page.ends_with(".json") => {
            add_file(inputs, "the page", Path::new(page), source)?;
        }
        Workload::Files { directory, .. } => {
            let entry = inputs.entry(format!(
                "the files in {}",
                named(Path::new(directory), source)
            ));
            if let Entry::Vacant(entry) = entry {
                entry.insert(hash_of_files(Path::new(directory), source)?);
            }
        }
        _ => {}
    }
    let words = settings
        .http
        .server
        .iter()
        .flat_map(|command| words(command));
    for path in words {
        add_file(inputs, "the program or file", &path, source)?;
    }
    Ok(())
}

fn hash_of_files(root: &Path, source: &Source) -> Result<String, RunFailure> {
    let files = files_below(root).map_err(|error| unusable(root, source, error))?;
    let mut digest = Digest::default();
    for (path, content) in &files {
        digest.text(path);
        digest.bytes(content);
    }
    Ok(digest.hex())
}

/// A file that a link reads.
struct LinkFile {
    what: &'static str,
    path: String,
}

/// The traces and the tables of delays of a link; none if it is part of a channel.
fn files(link: &LinkDef) -> Vec<LinkFile> {
    let spec = link.spec.parse::<LinkSpec>().ok();
    let spec = spec.filter(|_| link.channel.is_none());
    let directions = spec.into_iter().flat_map(|spec| [spec.up, spec.down]);
    let files = directions.flat_map(|direction| {
        let trace = direction.trace.map(|path| LinkFile {
            what: "the trace",
            path,
        });
        let table = match direction.jitter_distribution {
            DistributionName::Table(path) => Some(LinkFile {
                what: "the table of delays",
                path,
            }),
            _ => None,
        };
        let delays = direction.delay_trace.map(|path| LinkFile {
            what: "the trace of delays",
            path,
        });
        [trace, delays, table]
    });
    files.flatten().collect()
}

/// Whether `files` of `link` can be used.
fn check_files(link: &LinkDef, files: &[LinkFile], source: &Source) -> Result<(), RunFailure> {
    let built = link.spec.parse::<LinkSpec>();
    let built = built.and_then(|spec| spec.build::<()>(Seed::new(0)).map(drop));
    built.map_err(|error| {
        let text = error.to_string();
        let named = files.iter().find(|file| text.contains(&file.path));
        let path = named.or(files.first()).map_or("", |file| &file.path);
        unusable(Path::new(path), source, text)
    })
}

/// The files among the words of a command: programs by their path or from `PATH`, and files in arguments.
fn words(command: &str) -> Vec<PathBuf> {
    let bare = |word: &str| {
        word.trim_matches(['\'', '"', ';', '&', '(', ')'])
            .to_owned()
    };
    let words = command.split_whitespace().map(bare);
    let found = words.filter_map(|word| {
        let path = Path::new(&word);
        if path.components().count() > 1 || path.is_file() {
            return Some(path.to_owned());
        }
        let directories = env::var_os("PATH")?;
        env::split_paths(&directories)
            .map(|directory| directory.join(path))
            .find(|path| path.is_file())
    });
    found.filter(|path| path.is_file()).collect()
}

fn add_file(
    inputs: &mut Inputs,
    what: &str,
    path: &Path,
    source: &Source,
) -> Result<(), RunFailure> {
    let name = format!("{what} {}", named(path, source));
    if inputs.contains_key(&name) {
        return Ok(());
    }
    let content = match fs::metadata(path) {
        Ok(file) if !file.is_file() => Err("it is not a regular file".to_owned()),
        Ok(_) => fs::read(path).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let content = content
        .map_err(|problem| unusable(path, source, format_args!("cannot read {name}: {problem}")))?;
    let mut digest = Digest::default();
    digest.bytes(&content);
    inputs.insert(name, digest.hex());
    Ok(())
}
