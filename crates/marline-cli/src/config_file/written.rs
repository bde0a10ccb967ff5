//! Settings in a file: what was written for each key, and in which line.

use marline::settings::{Refused, Settings, Written, apply};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// What was written in a table, with the line of each key.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenTable {
    /// The file, as messages call it.
    file: String,
    entries: Vec<(String, Written)>,
    lines: Vec<Line>,
}

/// Where a key was written.
#[derive(Clone, Debug)]
struct Line {
    /// The key, after the tables that it is in.
    path: Vec<String>,
    number: usize,
}

impl WrittenTable {
    /// Takes the keys for which `is_setting` out of `table`, which is in a file called `file` with this `text`.
    pub(super) fn take(
        file: &str,
        text: &str,
        table: &mut DeTable<'_>,
        is_setting: impl Fn(&str) -> bool,
    ) -> Self {
        let mut taken = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        let mut others = DeTable::new();
        for (key, value) in std::mem::take(table) {
            let name = key.get_ref().to_string();
            if is_setting(&name) {
                let mut path = vec![name.clone()];
                taken.note(text, &path, key.span().start);
                let written = taken.read(text, &mut path, &value);
                taken.entries.push((name, written));
            } else {
                others.insert(key, value);
            }
        }
        *table = others;
        taken
    }

    fn note(&mut self, text: &str, path: &[String], at: usize) {
        self.lines.push(Line {
            path: path.to_vec(),
            number: super::line(text, at),
        });
    }

    /// The value that stands at `path`.
    fn read(
        &mut self,
        text: &str,
        path: &mut Vec<String>,
        value: &Spanned<DeValue<'_>>,
    ) -> Written {
        match value.get_ref() {
            DeValue::String(word) => Written::Text(current(path, word)),
            DeValue::Boolean(switch) => Written::Switch(*switch),
            DeValue::Integer(integer) => {
                let digits = integer.as_str().replace('_', "");
                let number = i64::from_str_radix(&digits, integer.radix());
                number.map_or_else(|_| Written::Text(digits.clone()), Written::Integer)
            }
            DeValue::Float(float) => {
                let digits = float.as_str().replace('_', "");
                Written::Number(digits.parse().unwrap_or(f64::NAN))
            }
            DeValue::Datetime(date) => Written::Text(date.to_string()),
            DeValue::Array(_) => Written::List,
            DeValue::Table(table) => {
                let mut entries = Vec::new();
                for (key, value) in table.iter() {
                    path.push(key.get_ref().to_string());
                    self.note(text, path, key.span().start);
                    let written = self.read(text, path, value);
                    let key = path.pop().unwrap_or_default();
                    entries.push((key, written));
                }
                Written::Table(entries)
            }
        }
    }

    /// Whether the key `path` was written.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        self.line_of(path).is_some()
    }

    /// Where `path` was written, for messages.
    pub(crate) fn place(&self, path: &[&str]) -> String {
        let line = self.line_of(path).unwrap_or(1);
        format!("{}:{line}", self.file)
    }

    fn line_of(&self, path: &[&str]) -> Option<usize> {
        let same =
            |(written, key): (&String, &&str)| written.replace('-', "_") == key.replace('-', "_");
        let mut lines = self.lines.iter();
        let line = lines
            .find(|line| line.path.len() == path.len() && line.path.iter().zip(path).all(same));
        line.map(|line| line.number)
    }

    /// Puts all of it into `config`.
    ///
    /// # Errors
    /// A key is unknown, or a value is not allowed: with file, line and key.
    pub(crate) fn apply<C>(&self, settings: Settings<C>, config: &mut C) -> Result<(), String> {
        self.apply_those(settings, config, |_| true)
    }

    /// The same with the keys of one table among several that share it.
    pub(crate) fn apply_some<C>(
        &self,
        settings: Settings<C>,
        config: &mut C,
    ) -> Result<(), String> {
        self.apply_those(settings, config, |key| is_key_of(settings, key))
    }

    fn apply_those<C>(
        &self,
        settings: Settings<C>,
        config: &mut C,
        takes: impl Fn(&str) -> bool,
    ) -> Result<(), String> {
        let entries = self.entries.iter().filter(|(key, _)| takes(key));
        let entries: Vec<_> = entries.cloned().collect();
        apply(settings, config, &entries).map_err(|why| self.explain(&why))
    }

    fn explain(&self, why: &Refused) -> String {
        let path: Vec<_> = why.path.iter().map(String::as_str).collect();
        format!("{}: {why}", self.place(&path))
    }
}

/// Whether `written` is a key of `settings`; `-` may stand for `_`.
pub(super) fn is_key_of<C>(settings: Settings<C>, written: &str) -> bool {
    let key = written.replace('-', "_");
    settings.iter().any(|setting| setting.key() == key)
}

/// A word that was another one once.
fn current(path: &[String], word: &str) -> String {
    match (path.last().map(String::as_str), word) {
        (Some("average"), "moving") => "ewma".to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use marline::coordination::bundle::BundleConfig;
    use marline::{MultipathConfig, Profile, TransportConfig};

    use super::super::tests::read;
    use super::*;

    fn applied(text: &str, profile: Profile) -> TransportConfig {
        let mut transport = profile.config();
        let file = read(text).unwrap();
        let settings = TransportConfig::SETTINGS;
        file.transport.apply(settings, &mut transport).unwrap();
        transport
    }

    /// What was written as a file has it.
    fn toml(written: &Written) -> String {
        match written {
            Written::Text(text) => format!("'{text}'"),
            other => other.to_string(),
        }
    }

    /// Reads every key of `settings` at the edges of what it can be, in the table `head`.
    fn every_key<C: Clone>(
        head: &str,
        settings: Settings<C>,
        default: &C,
        of: impl Fn(TransportConfig) -> C,
    ) {
        for setting in settings {
            for sample in setting.samples() {
                let mut expected = default.clone();
                setting.set(&mut expected, &sample).unwrap();
                for key in [setting.key().to_owned(), setting.key().replace('_', "-")] {
                    let text = format!("{head}{key} = {}\n", toml(&sample));
                    let read = of(applied(&text, Profile::Plain));
                    assert_eq!(setting.show(&read), setting.show(&expected), "{text}");
                }
            }
        }
    }

    #[test]
    fn every_key_of_a_connection_is_read() {
        let default = TransportConfig::default();
        every_key("", TransportConfig::SETTINGS, &default, |config| config);
        every_key(
            "[bundle]\n",
            BundleConfig::SETTINGS,
            &BundleConfig::default(),
            |config| BundleConfig::clone(&config.bundle.unwrap()),
        );
        every_key(
            "[multipath]\n",
            MultipathConfig::SETTINGS,
            &MultipathConfig::default(),
            |config| config.multipath.unwrap(),
        );
    }

    #[test]
    fn tables_switch_on_what_they_are_about_under_any_profile() {
        for profile in Profile::ALL {
            let config = applied("[bundle]\n[multipath]\n", profile);
            assert_eq!(config.bundle.as_deref(), Some(&BundleConfig::default()));
            let paths = config.multipath.unwrap();
            assert_eq!(paths.max_paths, MultipathConfig::default().max_paths);
            assert!(applied("bundle = false\n", profile).bundle.is_none());
        }
    }

    #[test]
    fn wrong_keys_and_values_are_refused_by_file_line_and_key() {
        for (text, line, words) in [
            (
                "[bundle]\nfiar = true",
                3,
                "bundle.fiar: unknown key \"fiar\"; did you mean fair?",
            ),
            (
                "[bundle]\nfair = 'yes'",
                3,
                "bundle.fair: this must be true or false, not \"yes\"",
            ),
            (
                "[bundle]\nfair = true\nconnections = 17",
                4,
                "bundle.connections: this must be an integer from 1 to 16, not 17",
            ),
            ("[bundle]\nconnections = -1", 3, "not -1"),
            (
                "[bundle]\nsync-state = true\nscope = 'some'",
                4,
                "known: all, active",
            ),
            (
                "[bundle]\ncorroborated-by = 'all'",
                3,
                "bundle.corroborated-by: this must be an integer from 1 to 16, or \"never\", not \"all\"",
            ),
            ("[multipath]\nmax-path = 3", 3, "did you mean max_paths?"),
            (
                "[multipath]\nscheduler = 'rr'\nmax-paths = 0",
                4,
                "from 1 to 16, not 0",
            ),
            ("[multipath]\nscheduler = 'best'", 3, "known: rr, lrf"),
            (
                "[multipath]\nscheduler = 'ecf(beta=11)'",
                3,
                "beta: this must be a number from 0 to 10",
            ),
            (
                "[multipath]\nprobe-interval = 'never'",
                3,
                "a time from 1ms to 1d",
            ),
            ("[multipath]\ngive-up-after = '30'", 3, "has no unit"),
            (
                "[multipath]\nkeep-alive = '999999min'",
                3,
                "a time from 1ms to 1d",
            ),
            (
                "[multipath]\nreinjection = 1.5",
                3,
                "a number from 0 to 1, true, false or \"none\", not 1.5",
            ),
            (
                "[multipath.bundle-paths]\nfloor-packets = 0",
                3,
                "from 1 to 1000, not 0",
            ),
            ("receive_window = '4m'", 2, "unknown unit \"m\""),
            ("slow-start-exit = 'hybird'", 2, "did you mean hybrid?"),
        ] {
            let error = read(&format!("cc = 'cubic'\n{text}\n")).unwrap_err();
            let place = format!("site.toml:{line}: ");
            assert!(error.contains(&place) && error.contains(words), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
