//! The table `[history]`: what the server remembers of paths, and what it makes of it.

use std::path::{Path, PathBuf};

use marline::coordination::history::{HistoryConfig, HistoryPolicy, StoreLimits};
use marline::settings::{Domain, FieldValue, Written};
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;

use super::written::{WrittenTable, is_key_of};
use super::{line, refuse_unknown};
use crate::history::{History, Place};

/// Under which name servers share what they learn, unless they say otherwise.
const NAMESPACE: &str = "marline";

/// The keys that are neither [`HistoryConfig::SETTINGS`] nor [`StoreLimits::SETTINGS`]. The table switches
/// history on, whatever the profile is; what is left out stays as it is by default.
#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "the table [history]"
)]
pub(crate) struct Table {
    policy: Option<Spanned<String>>,
    file: Option<Spanned<PathBuf>>,
    server: Option<Spanned<String>>,
    namespace: Option<Spanned<String>>,
    tokens: Option<Spanned<bool>>,
}

/// Its keys.
const KEYS: [&str; 5] = ["policy", "file", "server", "namespace", "tokens"];

/// Takes the settings out of `table`, of a file called `name` with this `text`.
pub(super) fn take(
    name: &str,
    text: &str,
    table: &mut DeTable<'_>,
) -> Result<WrittenTable, String> {
    let is_setting = |key: &str| {
        is_key_of(HistoryConfig::SETTINGS, key) || is_key_of(StoreLimits::SETTINGS, key)
    };
    let taken = WrittenTable::take(name, text, table, is_setting);
    let of_history = HistoryConfig::SETTINGS.iter().map(|setting| setting.key());
    let of_store = StoreLimits::SETTINGS.iter().map(|setting| setting.key());
    let settings = of_history.chain(of_store);
    refuse_unknown(name, text, table, || {
        KEYS.into_iter().chain(settings.clone())
    })?;
    Ok(taken)
}

impl Table {
    /// The settings that the table stands for, but for the place, with those that were `taken` out of it.
    ///
    /// # Errors
    /// A value is out of its range, or two keys do not go together.
    pub(super) fn settings(
        &self,
        name: &str,
        text: &str,
        taken: &WrittenTable,
    ) -> Result<History, String> {
        let at = |at: usize, what: String| format!("{name}:{}: {what}", line(text, at));
        let mut config = HistoryConfig::default();
        taken.apply_some(HistoryConfig::SETTINGS, &mut config)?;
        let mut limits = StoreLimits::default();
        taken.apply_some(StoreLimits::SETTINGS, &mut limits)?;
        if taken.has(&["lifetime"]) {
            limits.lifetime = config.lifetime;
        }
        let policy = match &self.policy {
            None => HistoryPolicy::default(),
            Some(policy) => {
                let written = Written::from(policy.get_ref().as_str());
                let policies = Domain::words::<HistoryPolicy>();
                let value = policies.read("policy", &written);
                let value = value.map_err(|why| at(policy.span().start, why))?;
                HistoryPolicy::from_value(&value).unwrap_or_default()
            }
        };
        let tokens = self.tokens.as_ref().is_some_and(|tokens| *tokens.get_ref());
        if let (Some(written), true, HistoryPolicy::Average) = (&self.tokens, tokens, policy) {
            let careful = HistoryPolicy::Careful.name();
            let what = format!("`tokens` is for `policy = \"{careful}\"`; leave one of them out");
            return Err(at(written.span().start, what));
        }
        Ok(History {
            policy,
            tokens,
            max_jump: config.cap.filter(|_| taken.has(&["cap"])),
            config,
            limits,
            place: Place::default(),
        })
    }

    /// Where what is learnt is kept; relative paths start at `base`.
    ///
    /// # Errors
    /// The keys do not name one place.
    pub(super) fn place(&self, name: &str, text: &str, base: &Path) -> Result<Place, String> {
        let place = |at: usize| format!("{name}:{}", line(text, at));
        let wrong = |at: usize, what: &str| Err(format!("{}: {what}", place(at)));
        match (&self.file, &self.server, &self.namespace) {
            (Some(file), Some(server), _) => {
                let file = place(file.span().start);
                let what = format!(
                    "`server` and `file` (at {file}) are two places; leave one of them out"
                );
                wrong(server.span().start, &what)
            }
            (_, None, Some(namespace)) => wrong(
                namespace.span().start,
                "`namespace` is a part of a `server`; name one, or leave it out",
            ),
            (None, Some(server), namespace) => {
                let at = namespace.as_ref().map_or(server.span(), Spanned::span);
                let namespace = namespace.as_ref().map(|name| name.get_ref().clone());
                Ok(Place::Server {
                    url: server.get_ref().clone(),
                    namespace: namespace.unwrap_or_else(|| NAMESPACE.to_owned()),
                    named_at: [place(server.span().start), place(at.start)],
                })
            }
            (Some(file), None, None) if file.get_ref().as_os_str().is_empty() => wrong(
                file.span().start,
                "`file` has no name; give it one, or leave it out",
            ),
            (Some(file), None, None) => Ok(Place::File(base.join(file.get_ref()))),
            (None, None, None) => Ok(Place::Memory),
        }
    }
}

#[cfg(test)]
mod tests;
