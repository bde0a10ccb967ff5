//! The table `[multipath]`: how connections use several paths.

use std::sync::Arc;
use std::time::Duration;

use marline::TransportConfig;
use marline::scheduling::path::{PathAlgorithm, ReinjectionConfig};
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
    #[serde(default, deserialize_with = "time")]
    probe_interval: Option<Duration>,
    #[serde(default, deserialize_with = "time_or_never")]
    give_up_after: Option<Option<Duration>>,
    #[serde(default, deserialize_with = "time_or_never")]
    keep_alive: Option<Option<Duration>>,
    #[serde(default, deserialize_with = "budget")]
    reinjection: Option<Option<ReinjectionConfig>>,
    /// Whether the paths that share one 4-tuple are coordinated.
    bundle_paths: Option<bool>,
}

impl Multipath {
    /// Has the connections of `transport` use several paths.
    pub(crate) fn apply(&self, transport: &mut TransportConfig) {
        let config = transport.multipath.get_or_insert_default();
        set(&mut config.max_paths, self.max_paths);
        if let Some(scheduler) = self.scheduler {
            config.scheduler = Arc::new(move || scheduler.build());
        }
        set(&mut config.probe_interval, self.probe_interval);
        set(&mut config.give_up_after, self.give_up_after);
        set(&mut config.keep_alive, self.keep_alive);
        set(&mut config.reinjection, self.reinjection);
        let bundle = self.bundle_paths.map(|on| on.then(Arc::default));
        set(&mut config.bundle_paths, bundle);
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

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    duration(&text).map(Some).ok_or_else(|| {
        de::Error::custom(format!(
            "a time is written as \"500ms\", \"30s\" or \"2min\", not \"{text}\""
        ))
    })
}

fn time_or_never<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<Duration>>, D::Error> {
    let text = String::deserialize(from)?;
    if text == "never" {
        return Ok(Some(None));
    }
    duration(&text).map(|time| Some(Some(time))).ok_or_else(|| {
        de::Error::custom(format!(
            "a time is written as \"500ms\", \"30s\", \"2min\" or \"never\", not \"{text}\""
        ))
    })
}

/// A time above 0, a day at most.
fn duration(text: &str) -> Option<Duration> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let number: u64 = number.parse().ok()?;
    let time = match unit {
        "ms" => Duration::from_millis(number),
        "s" => Duration::from_secs(number),
        "min" => Duration::from_secs(number.checked_mul(60)?),
        _ => return None,
    };
    (!time.is_zero() && time <= DAY).then_some(time)
}

/// Reads which part of what is sent may be copies; 0 is none.
fn budget<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Option<ReinjectionConfig>>, D::Error> {
    let budget = f64::deserialize(from)?;
    if !(0.0..=1.0).contains(&budget) {
        return Err(de::Error::custom(format!(
            "`reinjection` is a part of what is sent, from 0 (none) to 1, not {budget}"
        )));
    }
    let config = ReinjectionConfig {
        budget,
        ..ReinjectionConfig::default()
    };
    Ok(Some((budget > 0.0).then_some(config)))
}

#[cfg(test)]
mod tests {
    use marline::{MultipathConfig, Profile};

    use super::super::tests::read;
    use super::*;

    fn applied(text: &str, profile: Profile) -> MultipathConfig {
        let mut transport = profile.config();
        read(text).unwrap().multipath.unwrap().apply(&mut transport);
        transport.multipath.unwrap()
    }

    #[test]
    fn the_table_switches_multipath_on_under_any_profile() {
        let default = MultipathConfig::default();
        for profile in Profile::ALL {
            let config = applied("[multipath]\n", profile);
            assert_eq!(format!("{config:?}"), format!("{default:?}"));
            assert_eq!((config.scheduler)().name(), (default.scheduler)().name());
        }
    }

    #[test]
    fn every_key_sets_its_switch() {
        for algorithm in PathAlgorithm::ALL {
            let text = format!("[multipath]\nscheduler = '{algorithm}'\n");
            let config = applied(&text, Profile::Plain);
            assert_eq!((config.scheduler)().name(), algorithm.name());
        }
        let text = "[multipath]\nmax-paths = 7\nprobe-interval = '200ms'\ngive-up-after = 'never'\n\
                    keep-alive = '15s'\nreinjection = 0.1\nbundle-paths = true\n";
        let config = applied(text, Profile::Plain);
        assert_eq!(config.max_paths, 7);
        assert_eq!(config.probe_interval, Duration::from_millis(200));
        assert_eq!(config.give_up_after, None);
        assert_eq!(config.keep_alive, Some(Duration::from_secs(15)));
        assert_eq!(config.reinjection.unwrap().budget, 0.1);
        assert!(config.bundle_paths.is_some());
        let text = "[multipath]\ngive-up-after = '2min'\nkeep-alive = 'never'\nreinjection = 0.0\n\
                    bundle-paths = false\n";
        let config = applied(text, Profile::Multipath);
        assert_eq!(config.give_up_after, Some(Duration::from_secs(120)));
        assert_eq!(config.keep_alive, None);
        assert!(config.reinjection.is_none() && config.bundle_paths.is_none());
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
            ("probe-interval = 'never'", 3, "\"never\""),
            ("probe-interval = '0s'", 3, "\"0s\""),
            ("give-up-after = '30'", 3, "\"never\", not \"30\""),
            ("keep-alive = '2 weeks'", 3, "\"2 weeks\""),
            ("keep-alive = '999999min'", 3, "\"999999min\""),
            ("reinjection = 1.5", 3, "not 1.5"),
            ("reinjection = -0.1", 3, "not -0.1"),
            ("bundle-paths = 3", 3, "boolean"),
        ] {
            let error = read(&format!("cc = 'cubic'\n[multipath]\n{text}\n")).unwrap_err();
            let place = format!("site.toml:{line}: ");
            assert!(error.contains(&place) && error.contains(words), "{error}");
        }
    }
}
