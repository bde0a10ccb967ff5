//! The options of a client.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use marline::Profile;
use marline_http::client::{ClientConfig, HttpVersion, Trust};

use crate::failure::{Failure, at_mut, or, text};

/// The options of a client.
#[derive(Clone, Debug, Default)]
pub struct Options(ClientConfig);

impl Options {
    pub(crate) fn config(&self) -> ClientConfig {
        self.0.clone()
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let config = &mut self.0;
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
            "bundle" => config.bundle = flag(key, value)?,
            "profile" => {
                let profile: Profile = value.parse()?;
                config.quic.transport = Arc::new(profile.config());
            }
            "connect_timeout_ms" => config.connect_timeout = milliseconds(key, value)?,
            "stall_timeout_ms" => config.stall_timeout = Some(milliseconds(key, value)?),
            "qlog" => config.qlog = Some(value.into()),
            _ => {
                let known = "trust, http, fallback, bundle, profile, connect_timeout_ms, stall_timeout_ms or qlog";
                return Err(Failure::new(format!(
                    "there is no option `{key}`: expected {known}"
                )));
            }
        }
        Ok(())
    }
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
/// `fallback`: "true" for HTTP/2 where HTTP/3 does not connect, as where UDP is blocked; "false" is the default.
/// `profile`: the settings of QUIC, as of `marline get --profile`; "multipath" for several paths.
/// `bundle`: "true" if connections to one server announce that they belong together.
/// `connect_timeout_ms`, `stall_timeout_ms`: milliseconds, for a connection and for a response of which nothing arrives.
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
