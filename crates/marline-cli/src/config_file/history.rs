//! The table `[history]`: what the server remembers of paths, and what it makes of it.

use std::path::{Path, PathBuf};

use marline::coordination::history::{HistoryConfig, HistoryPolicy, StoreLimits};
use marline::settings::{Domain, Field, Settings};

use super::FILE;
use super::written::WrittenTable;
use crate::history::{History, Place};

/// Under which name servers share what they learn, unless they say otherwise.
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
        &Field::new(
            "policy",
            Domain::words::<HistoryPolicy>(),
            "How connections use what earlier ones learnt",
            |c: &mut Self| &mut c.policy,
        ),
        &Field::new(
            "tokens",
            Domain::SWITCH,
            "Whether clients carry what the server finds, too, sealed in their address tokens",
            |c: &mut Self| &mut c.tokens,
        ),
        &Field::new(
            "file",
            FILE,
            "Where it is kept; without `file` and `server`, in memory until the process ends",
            |c: &mut Self| &mut c.file,
        ),
        &Field::new(
            "server",
            Domain::text("a URL, as \"redis://host:6379\""),
            "The server that shares it among several of ours",
            |c: &mut Self| &mut c.server,
        ),
        &Field::new(
            "namespace",
            Domain::text("a name"),
            "Whose part of `server` it is; \"marline\" unless set",
            |c: &mut Self| &mut c.namespace,
        ),
    ];

    /// Where what is learnt is kept; relative paths start at `base`.
    ///
    /// # Errors
    /// The keys, which stand in `table`, do not name one place.
    fn place(self, table: &WrittenTable, base: &Path) -> Result<Place, String> {
        let place = |key: &str| table.place(&[key]);
        match (self.file, self.server, self.namespace) {
            (Some(_), Some(_), _) => Err(format!(
                "{}: `server` and `file` (at {}) are two places; leave one of them out",
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
                Ok(Place::Server {
                    url,
                    namespace: namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
                    named_at: [place("server"), place(named_by)],
                })
            }
            (Some(file), None, None) if file.as_os_str().is_empty() => Err(format!(
                "{}: `file` has no name; give it one, or leave it out",
                place("file")
            )),
            (Some(file), None, None) => Ok(Place::File(base.join(file))),
            (None, None, None) => Ok(Place::Memory),
        }
    }
}

/// What `table` stands for. It switches history on, whatever the profile is; what is left out is as by default.
///
/// # Errors
/// A key is unknown, a value is out of its range, or two keys do not go together.
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
        place: keys.place(table, base)?,
    })
}

#[cfg(test)]
mod tests;
