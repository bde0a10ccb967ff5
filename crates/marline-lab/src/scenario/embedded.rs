//! The experiments and published tables of the repository, embedded in the library.

/// The directory of published values.
pub(super) const TABLES: &str = "published";

/// A file of the directory `experiments`.
pub(super) struct File {
    /// Its path below that directory, with `/`.
    pub(super) path: &'static str,
    pub(super) text: &'static str,
}

/// All files, by path.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The names of the embedded experiments, in order.
pub fn embedded() -> Vec<&'static str> {
    let files = FILES.iter().filter(|file| !file.path.starts_with(TABLES));
    let mut names: Vec<_> = files
        .filter_map(|file| file.path.strip_suffix(".toml"))
        .collect();
    names.sort_unstable();
    names
}

/// The text of the experiment `id`.
pub(super) fn experiment(id: &str) -> Option<&'static str> {
    let is_it = |file: &&File| file.path.strip_suffix(".toml") == Some(id);
    FILES.iter().find(is_it).map(|file| file.text)
}

/// The text of the published table `name`.
pub(super) fn table(name: &str) -> Option<&'static str> {
    let name_of = |file: &File| file.path.strip_prefix(TABLES)?.strip_prefix('/');
    let found = FILES.iter().find(|file| name_of(file) == Some(name));
    found.map(|file| file.text)
}
