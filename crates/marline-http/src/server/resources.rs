//! What all responses of a server share.

use std::fmt::{self, Write};
use std::sync::Arc;

use super::files::OpenFiles;
use super::metrics::head;
use super::prefix::Prefix;

/// Budgets of a server.
#[derive(Debug)]
pub(super) struct Resources {
    pub(super) files: OpenFiles,
}

impl Resources {
    /// Writes what is in use, as metrics.
    pub(super) fn write(&self, out: &mut String) -> fmt::Result {
        let name = "marline_open_files";
        head(out, name, "gauge", "Files that responses hold open.")?;
        writeln!(out, "{name} {}", self.files.open())
    }
}

/// The extension of a request that says who sent it, and which budgets its response uses.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    pub(super) client: Prefix,
    pub(super) resources: Arc<Resources>,
}
