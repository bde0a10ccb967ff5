//! Files with what others must not read or forge: cookies, and what is known of servers.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Replaces the file at `path` as a whole; a new one belongs to its owner alone.
pub(super) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    // A device is written to, and a link stays one.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
        return fs::write(&target, content);
    }
    let directory = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let mut file = tempfile::NamedTempFile::new_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    if let Ok(metadata) = fs::metadata(&target) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.persist(&target)?;
    Ok(())
}
