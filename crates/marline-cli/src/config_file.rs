//! `serve`'s settings in a TOML file. Flags on the command line count more.

mod history;
mod written;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use marline::settings::unknown;
use marline::{Profile, TransportConfig};
use serde::{Deserialize, Deserializer, de};
use toml::de::{DeTable, DeValue};

pub(crate) use self::written::WrittenTable;
use self::written::is_key_of;
use crate::failure::Failure;
use crate::history::History;

/// Every key is the name of a flag, the table `history`, or a key of [`TransportConfig::SETTINGS`]; a `-` may
/// stand for each `_`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ConfigFile {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    #[serde(default, deserialize_with = "profile")]
    pub(crate) profile: Option<Profile>,
    pub(crate) qlog: Option<PathBuf>,
    #[cfg(feature = "tracing")]
    pub(crate) log: Option<crate::log::LogFilter>,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) access_log: Option<PathBuf>,
    pub(crate) follow_links: Option<bool>,
    pub(crate) cleartext: Option<bool>,
    #[serde(rename = "history")]
    history_table: Option<history::Table>,
    /// What the table `history` stands for.
    #[serde(skip)]
    pub(crate) history: Option<History>,
    /// The keys of [`TransportConfig::SETTINGS`].
    #[serde(skip)]
    pub(crate) transport: WrittenTable,
}

/// The keys that are not settings of the transport.
const KEYS: &[&str] = &[
    "dir",
    "listen",
    "cert",
    "key",
    "profile",
    "qlog",
    #[cfg(feature = "tracing")]
    "log",
    "metrics",
    "access-log",
    "follow-links",
    "cleartext",
    HISTORY,
];

/// The table of what is remembered of paths.
const HISTORY: &str = "history";

impl ConfigFile {
    /// Reads `path`; relative paths in it start at its directory.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!("cannot read {name}: {error}; check the path"))
        })?;
        let mut file = Self::parse(&name, &text).map_err(Failure::Usage)?;
        let base = path.parent().unwrap_or(Path::new(""));
        if let (Some(history), Some(table)) = (&mut file.history, &file.history_table) {
            history.place = table.place(&name, &text, base).map_err(Failure::Usage)?;
        }
        let paths = [&mut file.dir, &mut file.cert, &mut file.key, &mut file.qlog];
        for path in paths.into_iter().flatten() {
            *path = base.join(&path);
        }
        if let Some(log) = file
            .access_log
            .as_mut()
            .filter(|log| log.as_os_str() != "-")
        {
            *log = base.join(&log);
        }
        Ok(file)
    }

    /// Reads `text`, of a file called `name`, but for where history is kept.
    fn parse(name: &str, text: &str) -> Result<Self, String> {
        let wrong = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| line(text, span.start));
            format!("{name}:{line}: {}", error.message().replace('\n', " "))
        };
        let mut table = DeTable::parse(text).map_err(wrong)?;
        let is_setting = |key: &str| is_key_of(TransportConfig::SETTINGS, key);
        let transport = WrittenTable::take(name, text, table.get_mut(), is_setting);
        // All of it is checked now, whatever is made of it later.
        transport.apply(TransportConfig::SETTINGS, &mut TransportConfig::default())?;
        let keys = TransportConfig::SETTINGS
            .iter()
            .map(|setting| setting.key());
        refuse_unknown(name, text, table.get_ref(), || {
            KEYS.iter().copied().chain(keys.clone())
        })?;
        let learnt = match history_of(table.get_mut()) {
            Some(table) => Some(history::take(name, text, table)?),
            None => None,
        };
        let mut file = Self::deserialize(toml::de::Deserializer::from(table)).map_err(wrong)?;
        file.transport = transport;
        if let (Some(table), Some(learnt)) = (&file.history_table, learnt) {
            file.history = Some(table.settings(name, text, &learnt)?);
        }
        Ok(file)
    }
}

/// The table `history`, if it is one.
fn history_of<'a, 'i>(table: &'a mut DeTable<'i>) -> Option<&'a mut DeTable<'i>> {
    let mut entries = table.iter_mut();
    let (_, value) = entries.find(|(key, _)| key.get_ref() == HISTORY)?;
    match value.get_mut() {
        DeValue::Table(history) => Some(history),
        _ => None,
    }
}

/// Refuses the keys of `table` that are not `known`.
fn refuse_unknown<'a, K: Iterator<Item = &'a str>>(
    name: &str,
    text: &str,
    table: &DeTable<'_>,
    known: impl Fn() -> K,
) -> Result<(), String> {
    for (key, _) in table.iter() {
        let written = key.get_ref().as_ref();
        if !known().any(|known| known == written) {
            let line = line(text, key.span().start);
            let what = unknown("key", written, known());
            return Err(format!("{name}:{line}: {what}"));
        }
    }
    Ok(())
}

/// Reads the name of a profile.
fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Profile>, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map(Some).map_err(de::Error::custom)
}

/// The number of the line in which byte `at` stands.
fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
        + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn read(text: &str) -> Result<ConfigFile, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("site.toml");
        std::fs::write(&path, text).unwrap();
        ConfigFile::read(&path).map_err(|failure| match failure {
            Failure::Usage(message) => message,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn paths_start_at_the_file() {
        let file = read(
            "dir = 'www'\nlisten = '[::1]:443'\naccess-log = '-'\ncc = 'bbr'\nprofile = 'today'",
        )
        .unwrap();
        assert!(file.dir.unwrap().is_absolute());
        assert_eq!(file.access_log.unwrap(), Path::new("-"));
        let mut transport = TransportConfig::default();
        let settings = TransportConfig::SETTINGS;
        file.transport.apply(settings, &mut transport).unwrap();
        assert_eq!(transport.controller.spec().name(), "bbr");
        assert_eq!(file.profile, Some(Profile::Today));
    }

    #[test]
    fn unknown_keys_are_refused_by_name_and_line() {
        let error = read("dir = 'www'\n\nlissen = '[::1]:443'\n").unwrap_err();
        assert!(
            error.contains("site.toml:3:") && error.contains("lissen"),
            "{error}"
        );
        let error = read("profile = 'plan'").unwrap_err();
        assert!(error.contains("known: plain"), "{error}");
        let error = read("dir = 5").unwrap_err();
        assert!(error.contains("site.toml:1:"), "{error}");
        assert!(!error.contains('\n'));
    }
}
