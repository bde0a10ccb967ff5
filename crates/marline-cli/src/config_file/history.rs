//! The table `[history]`: the server's history store, and how it is used.

use std::path::{Path, PathBuf};

use marline::coordination::history::{HistoryConfig, HistoryPolicy, StoreLimits};
use marline::settings::{Domain, Settings, field};

use super::FILE;
use super::written::WrittenTable;
use crate::history::{History, StoreLocation};

/// The default namespace of records in a shared store.
const NAMESPACE: &str = "marline";

/// The keys that are neither [`HistoryConfig::SETTINGS`] nor [`StoreLimits::SETTINGS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HistoryKeys {
    policy: HistoryPolicy,
    tokens: bool,
    file: Option<PathBuf>,
    server: Option<String>,
    namespace: Option<String>,
}

impl HistoryKeys {
    /// Its keys in settings.
    pub(crate) const SETTINGS: Settings<Self> = &[
        field!(policy: Domain::words::<HistoryPolicy>(), "How connections use what earlier ones learnt"),
        field!(tokens: Domain::SWITCH, "Whether address tokens carry the capacity of the path as well, sealed"),
        field!(file: FILE, "The file of the store; without `file` and `server` it is in memory until the process ends"),
        field!(server: Domain::text("a URL, as \"redis://host:6379\""), "The server with a store that several servers share"),
        field!(namespace: Domain::text("a name"), "The namespace of the records in `server`; \"marline\" unless set"),
    ];

    /// The location of the store; relative paths start at `base`.
    ///
    /// # Errors
    /// The keys of `table` do not name exactly one location.
    fn location(self, table: &WrittenTable, base: &Path) -> Result<StoreLocation, String> {
        let place = |key: &str| table.place(&[key]);
        match (self.file, self.server, self.namespace) {
            (Some(_), Some(_), _) => Err(format!(
                "{}: `server` and `file` (at {}) are two locations; leave one of them out",
                place("server"),
                place("file")
            )),
            (_, None, Some(_)) => Err(format!(
                "{}: `namespace` is a part of a `server`; name one, or leave it out",
                place("namespace")
            )),
            (None, Some(url), namespace) => {
                let named_by = match namespace {
                    Some(_) => "namespace",
                    None => "server",
                };
                Ok(StoreLocation::Server {
                    url,
                    namespace: namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
                    named_at: [place("server"), place(named_by)],
                })
            }
            (Some(file), None, None) if file.as_os_str().is_empty() => Err(format!(
                "{}: `file` has no name; give it one, or leave it out",
                place("file")
            )),
            (Some(file), None, None) => Ok(StoreLocation::File(base.join(file))),
            (None, None, None) => Ok(StoreLocation::Memory),
        }
    }
}

/// The settings of `table`. It switches history on under any profile; keys that are left out have their defaults.
///
/// # Errors
/// A key is unknown, a value is out of range, or two keys are in conflict.
pub(super) fn read(table: &WrittenTable, base: &Path) -> Result<History, String> {
    let own = HistoryKeys::SETTINGS.iter().map(|setting| setting.key());
    let of_history = HistoryConfig::SETTINGS.iter().map(|setting| setting.key());
    let of_store = StoreLimits::SETTINGS.iter().map(|setting| setting.key());
    table.refuse_unknown(&own.chain(of_history).chain(of_store).collect::<Vec<_>>())?;
    let mut config = HistoryConfig::default();
    table.apply(HistoryConfig::SETTINGS, &mut config)?;
    let mut limits = StoreLimits::default();
    table.apply(StoreLimits::SETTINGS, &mut limits)?;
    if table.has(&["lifetime"]) {
        limits.lifetime = config.lifetime;
    }
    let mut keys = HistoryKeys::default();
    table.apply(HistoryKeys::SETTINGS, &mut keys)?;
    if keys.tokens && keys.policy == HistoryPolicy::Average {
        let place = table.place(&["tokens"]);
        let careful = HistoryPolicy::Careful.name();
        return Err(format!(
            "{place}: `tokens` is for `policy = \"{careful}\"`; leave one of them out"
        ));
    }
    Ok(History {
        policy: keys.policy,
        tokens: keys.tokens,
        max_jump: config.cap.filter(|_| table.has(&["cap"])),
        config,
        limits,
        location: keys.location(table, base)?,
    })
}

#[cfg(test)]
mod tests;
