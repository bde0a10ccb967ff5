//! The settings of an endpoint: a profile and changes to it.

use std::net::SocketAddr;

use marline::congestion::ConnectionKind;
use marline::settings::{RawValue, Refused, Shown, Value as Setting, apply, is_key, show};
use marline::{MultipathConfig, Profile, TransportConfig};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{InitialWindow, Value};

/// A profile, and the settings that differ from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EndpointSettings {
    /// The policies to start from.
    pub profile: Profile,
    /// The initial window, if it is set to a number or to a policy that uses earlier connections.
    pub initial_window: Option<InitialWindow>,
    /// Other changed settings, by the keys of [`TransportConfig::SETTINGS`].
    written: Vec<(String, RawValue)>,
}

/// The table of multipath settings.
const MULTIPATH: &str = "multipath";

/// Its key for the number of paths that a client opens.
const MAX_PATHS: &str = "max_paths";

impl EndpointSettings {
    /// A profile without changes.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// The same settings, with one more of [`TransportConfig::SETTINGS`].
    ///
    /// # Errors
    /// The key is unknown, or the value is not allowed.
    pub fn with(self, key: &str, value: impl Into<RawValue>) -> Result<Self, Refused> {
        self.with_all(vec![(key.to_owned(), value.into())])
    }

    /// The same settings, with all of `written`. Tables are merged key by key, unless they name a `base`.
    pub(super) fn with_all(mut self, written: Vec<(String, RawValue)>) -> Result<Self, Refused> {
        merge(&mut self.written, written);
        self.try_transport()?;
        Ok(self)
    }

    /// The transport configuration of one endpoint. Its history of paths is not shared with other endpoints.
    pub fn transport(&self) -> TransportConfig {
        self.try_transport()
            .expect("settings are checked when they are made")
    }

    fn try_transport(&self) -> Result<TransportConfig, Refused> {
        let mut config = self.profile.config();
        let mut written = self.written.clone();
        let mut tables = written.iter_mut();
        if let Some((_, RawValue::Table(entries))) = tables.find(|(key, _)| key == MULTIPATH) {
            complete_multipath(entries, config.multipath.is_some());
        }
        apply(TransportConfig::SETTINGS, &mut config, &written)?;
        if let Some(window) = &self.initial_window {
            window.apply(&mut config);
        }
        Ok(config)
    }
}

/// Adds the default of scenarios to a table of `multipath` that switches it on, as any of its keys does: a client
/// opens all paths of the scenario.
fn complete_multipath(entries: &mut Vec<(String, RawValue)>, of_profile: bool) {
    let find = |key| {
        let mut entries = entries.iter();
        entries.find(|(written, _)| is_key(written, key))
    };
    let is_switched_on = match find("on") {
        Some((_, on)) => *on == RawValue::Switch(true),
        None => !of_profile,
    };
    if is_switched_on && find(MAX_PATHS).is_none() {
        let most = RawValue::Integer(MultipathConfig::MAX_PATHS.into());
        entries.push((MAX_PATHS.to_owned(), most));
    }
}

/// Replaces entries of `old` by those of `new`.
fn merge(old: &mut Vec<(String, RawValue)>, new: Vec<(String, RawValue)>) {
    for (key, value) in new {
        let is_same = |known: &str| known.replace('-', "_") == key.replace('-', "_");
        let known = old.iter_mut().find(|(known, _)| is_same(known));
        match (known, value) {
            (Some((_, RawValue::Table(old))), RawValue::Table(new))
                if !new.iter().any(|(key, _)| key == "base") =>
            {
                merge(old, new);
            }
            (Some((_, slot)), value) => *slot = value,
            (None, value) => old.push((key, value)),
        }
    }
}

/// The UDP payload that every path must carry, in bytes (RFC 9000, section 14).
const SMALLEST_DATAGRAM: u16 = 1200;

/// Every resulting setting, those of the profile included.
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

/// A setting as in results: times in seconds, sizes in bytes.
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
        Shown::Value(Setting::Share(share)) => share.as_f64().into(),
        Shown::Value(Setting::Word(word)) => word.into(),
        Shown::Value(Setting::Without) => Value::Null,
    }
}
