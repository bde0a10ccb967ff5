//! Mapping between request paths and files.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The file below `root` that a request `path` names, or `None` if it is outside `root`.
#[must_use]
pub fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.strip_prefix('/')?);
    relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
        .then(|| root.join(relative))
}

/// Writes a downloaded file; creates directories as needed.
///
/// # Errors
/// If `path` is outside `out`, or on I/O errors.
pub fn save(out: &Path, path: &str, content: &[u8]) -> io::Result<()> {
    let file = resolve(out, path).ok_or_else(|| io::Error::other(format!("bad path {path}")))?;
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(file, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_outside_the_root_are_rejected() {
        let root = Path::new("/www");
        assert_eq!(resolve(root, "/a/b"), Some(PathBuf::from("/www/a/b")));
        assert_eq!(resolve(root, "/../etc/passwd"), None);
        assert_eq!(resolve(root, "//etc/passwd"), None);
        assert_eq!(resolve(root, "a"), None);
    }
}
