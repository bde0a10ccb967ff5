//! The options of a client.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use marline::{PathPolicy, PathRule, Profile};
use marline_http::client::{ClientConfig, HttpVersion, Trust};

use crate::failure::{Failure, at_mut, or, text};

/// The options of a client.
#[derive(Clone, Debug, Default)]
pub struct Options {
    config: ClientConfig,
    /// The limit of a whole request, with its response.
    max_time: Option<Duration>,
}

impl Options {
    pub(crate) fn config(&self) -> ClientConfig {
        self.config.clone()
    }

    pub(crate) fn max_time(&self) -> Option<Duration> {
        self.max_time
    }

    /// Sets an option; [`marline_options_set`] names all.
    ///
    /// # Errors
    /// If there is no such option or value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let config = &mut self.config;
        match key {
            "trust" => {
                config.trust = match value {
                    "system" => Trust::System,
                    "insecure" => Trust::Insecure,
                    file => Trust::File(file.into()),
                }
            }
            "http" => {
                config.version = match value {
                    "3" => HttpVersion::Http3,
                    "2" => HttpVersion::Http2,
                    "1.1" => HttpVersion::Http11,
                    _ => return Err(unknown(key, value, "3, 2 or 1.1")),
                }
            }
            "fallback" => config.fallback = flag(key, value)?,
            "migrate" => config.migrate = flag(key, value)?,
            "interface" => {
                let local = value.parse();
                config.network.local = Some(local.map_err(Failure::new)?);
            }
            "paths" => config.paths = paths(value)?,
            "bundle" => config.bundle = flag(key, value)?,
            "profile" => {
                let profile: Profile = value.parse()?;
                config.quic.transport = Arc::new(profile.config());
            }
            "connect_timeout_ms" => config.connect_timeout = milliseconds(key, value)?,
            "stall_timeout_ms" => config.stall_timeout = Some(milliseconds(key, value)?),
            "max_time_ms" => self.max_time = Some(milliseconds(key, value)?),
            "qlog" => config.qlog = Some(value.into()),
            _ => {
                let known = "trust, http, fallback, migrate, interface, paths, bundle, profile, connect_timeout_ms, stall_timeout_ms, max_time_ms or qlog";
                return Err(Failure::new(format!(
                    "there is no option `{key}`: expected {known}"
                )));
            }
        }
        Ok(())
    }
}

/// The rules of paths, one after another; none for no rules.
fn paths(text: &str) -> Result<Option<PathPolicy>, Failure> {
    let rules: Vec<PathRule> = text
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    Ok((!rules.is_empty()).then(|| PathPolicy {
        rules,
        ..PathPolicy::default()
    }))
}

fn unknown(key: &str, value: &str, expected: &str) -> Failure {
    Failure::new(format!("{key} = `{value}`: expected {expected}"))
}

fn flag(key: &str, value: &str) -> Result<bool, Failure> {
    value
        .parse()
        .map_err(|_| unknown(key, value, "true or false"))
}

fn milliseconds(key: &str, value: &str) -> Result<Duration, Failure> {
    match value.parse() {
        Ok(number @ 1..) => Ok(Duration::from_millis(number)),
        _ => Err(unknown(key, value, "milliseconds, more than 0")),
    }
}

/// Options with their defaults.
#[unsafe(no_mangle)]
pub extern "C" fn marline_options_new() -> *mut Options {
    Box::into_raw(Box::default())
}

/// Sets an option. Returns 0, or -1 if there is no such option or value.
///
/// `trust`: "system" (the default), the name of a file in PEM, or "insecure", which is for tests only.
/// `http`: "3" (the default), "2" or "1.1".
/// `fallback`: "false" if HTTP/2 must not be used where HTTP/3 does not connect, as where UDP is blocked; "true" is the default.
/// `migrate`: "false" if QUIC connections must stay on their network when it is gone or gets no answers; "true" is the default.
/// `interface`: the name of the interface, or the address of this host, that all connections use.
/// `paths`: the interfaces or addresses that QUIC connections use, separated by spaces, as "wlan0 wwan0,backup,cap=10MB": all with
/// `profile` "multipath" if the server supports it, otherwise one, and another when that is lost. HTTP/2 is not used then.
/// `profile`: the settings of QUIC, as of `marline get --profile`; "multipath" for several paths.
/// `bundle`: "true" if connections to one server announce that they belong together.
/// `connect_timeout_ms`, `stall_timeout_ms`: milliseconds, for a connection and for a response of which nothing arrives.
/// `max_time_ms`: milliseconds for a whole request, from its call to the end of the content of its response; without a limit by default.
/// `qlog`: a directory for a log of each QUIC connection.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_options_set(
    options: *mut Options,
    key: *const c_char,
    value: *const c_char,
) -> i32 {
    // SAFETY: as the header says.
    let set = unsafe { at_mut(options, "options") }.and_then(|options| {
        // SAFETY: as the header says.
        let (key, value) = unsafe { (text(key, "key")?, text(value, "value")?) };
        options.set(key, value)
    });
    or(-1, set.map(|()| 0))
}

/// Frees options. Clients that were made of them stay.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_options_free(options: *mut Options) {
    if !options.is_null() {
        // SAFETY: it is from `marline_options_new`, and not used again.
        drop(unsafe { Box::from_raw(options) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(key: &str, value: &str) -> Option<Options> {
        let mut options = Options::default();
        options.set(key, value).ok().map(|()| options)
    }

    #[test]
    fn connections_migrate_and_fall_back_unless_options_say_otherwise() {
        let defaults = Options::default().config();
        assert!(defaults.migrate && defaults.fallback);
        assert!(!set("migrate", "false").unwrap().config().migrate);
        assert!(!set("fallback", "false").unwrap().config().fallback);
        assert!(set("fallback", "no").is_none());
    }

    #[test]
    fn paths_are_rules_separated_by_spaces() {
        let paths = |text| {
            Some(
                set("paths", text)?
                    .config()
                    .paths
                    .map_or(0, |paths| paths.rules.len()),
            )
        };
        assert_eq!(paths("wlan0 wwan0,backup,cap=10MB"), Some(2));
        assert_eq!(paths(""), Some(0));
        assert_eq!(paths("wlan0 wwan0,reserve"), None);
    }

    #[test]
    fn time_limits_are_positive() {
        let limit = Duration::from_millis(1500);
        assert_eq!(set("max_time_ms", "1500").unwrap().max_time(), Some(limit));
        assert!(set("max_time_ms", "0").is_none());
    }
}
