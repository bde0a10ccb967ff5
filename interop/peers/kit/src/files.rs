//! Request paths to files and back.

use std::io;
use std::path::{Component, Path, PathBuf};

/// The file below `root` that a request `path` names, or `None` if it would leave `root`.
#[must_use]
pub fn resolve(root: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.strip_prefix('/')?);
    relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)))
        .then(|| root.join(relative))
}

/// Writes a downloaded file; directories are made as needed.
///
/// # Errors
/// If `path` would leave `out`, or on I/O errors.
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
    fn stays_inside() {
        let root = Path::new("/www");
        assert_eq!(resolve(root, "/a/b"), Some(PathBuf::from("/www/a/b")));
        assert_eq!(resolve(root, "/../etc/passwd"), None);
        assert_eq!(resolve(root, "//etc/passwd"), None);
        assert_eq!(resolve(root, "a"), None);
    }
}
