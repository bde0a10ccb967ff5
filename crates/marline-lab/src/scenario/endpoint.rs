//! How an endpoint behaves: a profile and what is different from it.

use std::net::SocketAddr;

use marline::congestion::ConnectionKind;
use marline::settings::{Refused, Shown, Value as Setting, Written, apply, show};
use marline::{MultipathConfig, Profile, TransportConfig};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{FirstWindow, Value};

/// A profile, and what is different from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointSettings {
    /// The policies to start from.
    pub profile: Profile,
    /// The first congestion window, where it is a number or learnt.
    pub initial_window: Option<FirstWindow>,
    /// What else is different, by the keys of [`TransportConfig::SETTINGS`].
    written: Vec<(String, Written)>,
}

/// The table of settings in which keys mean something only where it is on.
const MULTIPATH: &str = "multipath";

impl EndpointSettings {
    /// A profile as it is.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// The same with one setting of [`TransportConfig::SETTINGS`].
    ///
    /// # Errors
    /// There is no such key, or it has no such value.
    pub fn with(self, key: &str, value: impl Into<Written>) -> Result<Self, Refused> {
        self.with_all(vec![(key.to_owned(), value.into())])
    }

    /// The same with all of `written`. Tables are taken together key by key, unless they name a `base`.
    pub(super) fn with_all(mut self, written: Vec<(String, Written)>) -> Result<Self, Refused> {
        merge(&mut self.written, written);
        self.try_transport()?;
        Ok(self)
    }

    /// The same for the transport of one endpoint: what it learns of paths is shared with no other.
    pub fn transport(&self) -> TransportConfig {
        self.try_transport()
            .expect("settings are checked when they are made")
    }

    fn try_transport(&self) -> Result<TransportConfig, Refused> {
        let mut config = self.profile.config();
        let mut written = self.written.clone();
        let mut tables = written.iter_mut();
        if let Some((_, Written::Table(entries))) = tables.find(|(key, _)| key == MULTIPATH) {
            complete_multipath(entries, config.multipath.is_some());
        }
        apply(TransportConfig::SETTINGS, &mut config, &written)?;
        if let Some(window) = &self.initial_window {
            window.apply(&mut config);
        }
        Ok(config)
    }
}

/// Says in a table of `multipath` what a scenario leaves to be understood: keys switch nothing on, and a client
/// that may have several paths opens all that the scenario names.
fn complete_multipath(entries: &mut Vec<(String, Written)>, of_profile: bool) {
    let find = |key| entries.iter().find(|(written, _)| written == key);
    let missing = match find("on") {
        None => ("on", Written::Switch(of_profile)),
        Some((_, Written::Switch(true))) if find("max_paths").is_none() => (
            "max_paths",
            Written::Integer(MultipathConfig::MAX_PATHS.into()),
        ),
        Some(_) => return,
    };
    entries.push((missing.0.to_owned(), missing.1));
}

/// Puts `new` over `old`.
fn merge(old: &mut Vec<(String, Written)>, new: Vec<(String, Written)>) {
    for (key, value) in new {
        let known = old.iter_mut().find(|(known, _)| *known == key);
        match (known, value) {
            (Some((_, Written::Table(old))), Written::Table(new))
                if !new.iter().any(|(key, _)| key == "base") =>
            {
                merge(old, new);
            }
            (Some((_, slot)), value) => *slot = value,
            (None, value) => old.push((key, value)),
        }
    }
}

/// The UDP payload that every path carries, in bytes (RFC 9000, section 14).
const SMALLEST_DATAGRAM: u16 = 1200;

/// Every setting as it comes out, the profile's included: what the configuration itself says.
impl Serialize for EndpointSettings {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let config = self.transport();
        let packet = u64::from(SMALLEST_DATAGRAM);
        let kind = ConnectionKind {
            now: marline::Instant::EPOCH,
            peer: SocketAddr::from(([10, 0, 0, 1], 443)),
            server_name: None,
            resumed: false,
            max_datagram_size: packet,
        };
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("profile", self.profile.name())?;
        map.serialize_entry(
            "initial_window_packets",
            &(config.initial_window.window(&kind) / packet),
        )?;
        let delay = (config.ack_policy)().max_ack_delay();
        map.serialize_entry("max_ack_delay_ms", &delay.as_millis())?;
        let window = self.initial_window.as_ref();
        if let Some(learnt) = window.and_then(|window| window.learnt.as_deref()) {
            map.serialize_entry("initial_window_learnt", &learnt.shown())?;
        }
        for (key, shown) in show(TransportConfig::SETTINGS, &config) {
            map.serialize_entry(key, &shown_value(shown))?;
        }
        map.end()
    }
}

/// A setting in results: times in seconds, sizes in bytes.
pub(super) fn shown_value(shown: Shown) -> Value {
    match shown {
        Shown::Table(entries) => entries
            .into_iter()
            .map(|(key, shown)| (key.to_owned(), shown_value(shown)))
            .collect(),
        Shown::Value(Setting::Switch(switch)) => switch.into(),
        Shown::Value(Setting::Integer(number)) => number.into(),
        Shown::Value(Setting::Number(number)) => number.into(),
        Shown::Value(Setting::Time(time)) => time.as_secs_f64().into(),
        Shown::Value(Setting::Word(word)) => word.into(),
        Shown::Value(Setting::Without) => Value::Null,
    }
}
