//! The place of a site or of a route in a file, for messages.

use std::collections::BTreeMap;

use crate::error::SiteError;

/// The file and the line of a table, and of its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenAt {
    table: String,
    keys: BTreeMap<String, String>,
}

impl WrittenAt {
    /// A table at `table`, as `site.toml:12`, whose keys, spelled with `_`, are at `keys`.
    pub fn new(table: String, keys: BTreeMap<String, String>) -> Self {
        Self { table, keys }
    }

    /// `error` with the place of its key, or of the table if it is about another one. Without a file, it stays as it is.
    pub(crate) fn locate(&self, error: SiteError) -> SiteError {
        if self.table.is_empty() || matches!(error, SiteError::At { .. }) {
            return error;
        }
        let key = error.key();
        let place = match key.and_then(|key| self.keys.get(key)) {
            Some(place) => format!("{place}: {}", key.unwrap_or_default()),
            None => self.table.clone(),
        };
        SiteError::At {
            place,
            cause: Box::new(error),
        }
    }
}
