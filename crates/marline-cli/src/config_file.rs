//! `serve`'s settings in a TOML file. Flags on the command line count more.

mod bundle;
mod history;
mod multipath;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use marline::Profile;
use serde::Deserialize;

pub(crate) use self::bundle::Bundle;
pub(crate) use self::multipath::Multipath;
use crate::failure::Failure;
use crate::history::History;
use crate::transport::{self, Congestion};

/// Every key is the name of a flag, except the tables `bundle`, `history` and `multipath`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ConfigFile {
    pub(crate) dir: Option<PathBuf>,
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    #[serde(default, deserialize_with = "transport::profile")]
    pub(crate) profile: Option<Profile>,
    pub(crate) cc: Option<Congestion>,
    pub(crate) qlog: Option<PathBuf>,
    #[cfg(feature = "tracing")]
    pub(crate) log: Option<crate::log::LogFilter>,
    pub(crate) metrics: Option<SocketAddr>,
    pub(crate) access_log: Option<PathBuf>,
    pub(crate) follow_links: Option<bool>,
    pub(crate) cleartext: Option<bool>,
    pub(crate) bundle: Option<Bundle>,
    pub(crate) multipath: Option<Multipath>,
    #[serde(rename = "history")]
    history_table: Option<history::Table>,
    /// What the table `history` stands for.
    #[serde(skip)]
    pub(crate) history: Option<History>,
}

impl ConfigFile {
    /// Reads `path`; relative paths in it start at its directory.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!("cannot read {name}: {error}; check the path"))
        })?;
        let mut file: Self = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| line(&text, span.start));
            let reason = error.message().replace('\n', " ");
            Failure::Usage(format!("{name}:{line}: {reason}"))
        })?;
        if let Some(bundle) = &mut file.bundle
            && let Some(fair) = &bundle.fair
        {
            bundle.fair_at = format!("{name}:{}", line(&text, fair.span().start));
        }
        let base = path.parent().unwrap_or(Path::new(""));
        if let Some(table) = file.history_table.take() {
            file.history = Some(table.settings(&name.to_string(), &text, base)?);
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
}

/// Puts `value` into `place`, if there is one.
fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
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
        assert_eq!(file.cc, Some(Congestion::Bbr));
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
