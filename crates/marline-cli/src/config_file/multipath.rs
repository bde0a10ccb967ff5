//! The table `[multipath]`: how connections use several paths.

use std::sync::Arc;

use marline::TransportConfig;
use marline::scheduling::path::PathAlgorithm;
use serde::{Deserialize, Deserializer, de};

use super::set;

/// The most paths of one connection.
const MAX_PATHS: u32 = 16;

/// What an operator may choose of [`MultipathConfig`](marline::MultipathConfig), under the same names. What is
/// left out stays as it is by default. The table switches multipath on, whatever the profile is.
#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "the table [multipath]"
)]
pub(crate) struct Multipath {
    #[serde(default, deserialize_with = "paths")]
    max_paths: Option<u32>,
    #[serde(default, deserialize_with = "scheduler")]
    scheduler: Option<PathAlgorithm>,
}

impl Multipath {
    /// Has the connections of `transport` use several paths.
    pub(crate) fn apply(&self, transport: &mut TransportConfig) {
        let config = transport.multipath.get_or_insert_default();
        set(&mut config.max_paths, self.max_paths);
        if let Some(scheduler) = self.scheduler {
            config.scheduler = Arc::new(move || scheduler.build());
        }
    }
}

/// Reads a number of paths that one connection can have.
fn paths<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let number = i64::deserialize(from)?;
    match u32::try_from(number) {
        Ok(paths) if (1..=MAX_PATHS).contains(&paths) => Ok(Some(paths)),
        _ => Err(de::Error::custom(format!(
            "`max-paths` is from 1 to {MAX_PATHS}, not {number}"
        ))),
    }
}

/// Reads the name of a path scheduler.
fn scheduler<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathAlgorithm>, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map(Some).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use marline::Profile;

    use super::super::tests::read;
    use super::*;

    fn applied(text: &str, profile: Profile) -> (u32, &'static str) {
        let mut transport = profile.config();
        read(text).unwrap().multipath.unwrap().apply(&mut transport);
        let config = transport.multipath.unwrap();
        (config.max_paths, (config.scheduler)().name())
    }

    #[test]
    fn the_table_switches_multipath_on_under_any_profile() {
        let default = marline::MultipathConfig::default();
        for profile in Profile::ALL {
            let expected = (default.max_paths, (default.scheduler)().name());
            assert_eq!(applied("[multipath]\n", profile), expected);
        }
    }

    #[test]
    fn every_key_sets_its_switch() {
        for algorithm in PathAlgorithm::ALL {
            let text = format!("[multipath]\nmax-paths = 7\nscheduler = '{algorithm}'\n");
            let expected = (7, algorithm.name());
            assert_eq!(applied(&text, Profile::Plain), expected);
        }
    }

    #[test]
    fn wrong_keys_and_values_are_refused_by_line() {
        for (text, line, words) in [
            ("max-path = 3", 3, "max-path"),
            ("max-paths = 17", 3, "from 1 to 16, not 17"),
            ("scheduler = 'rr'\nmax-paths = 0", 4, "not 0"),
            (
                "max-paths = 2\nscheduler = 'best'",
                4,
                "`best`: use rr, lrf",
            ),
            ("scheduler = 5", 3, "string"),
        ] {
            let error = read(&format!("cc = 'cubic'\n[multipath]\n{text}\n")).unwrap_err();
            let place = format!("site.toml:{line}: ");
            assert!(error.contains(&place) && error.contains(words), "{error}");
        }
    }
}
