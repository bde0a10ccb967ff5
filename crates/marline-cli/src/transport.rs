//! Flags of QUIC, shared by server and client.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use marline::congestion::CONTROLLERS;
use marline::scheduling::path::SCHEDULERS;
use marline::settings::{RawValue, Refused, apply, is_key};
use marline::{Profile, TransportConfig};

use crate::failure::Failure;
use crate::history::{INITIAL_WINDOW, instead_of_initial_window};
use crate::values::{policy, profile};

/// The heading of flags for research on the transport, which the short help leaves out.
pub(crate) const RESEARCH: &str = "Transport research";

/// A version of QUIC.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum QuicVersion {
    /// RFC 9000
    V1,
    /// RFC 9369
    V2,
}

impl From<QuicVersion> for marline::Version {
    fn from(version: QuicVersion) -> Self {
        match version {
            QuicVersion::V1 => Self::V1,
            QuicVersion::V2 => Self::V2,
        }
    }
}

/// The settings of QUIC.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TransportFlags {
    /// The set of policies to use; `marline reference policies` also has the baselines for experiments
    #[arg(long, value_name = "NAME", value_parser = profile())]
    pub(crate) profile: Option<Profile>,

    /// The congestion controller to use instead of the profile's
    #[arg(long, value_name = "NAME", value_parser = policy(&CONTROLLERS), help_heading = RESEARCH, hide_short_help = true)]
    pub(crate) cc: Option<String>,

    /// The path scheduler, which selects the path of each packet that this end sends; switches multipath on. With parameters as in 'ecf(beta=0.5)'
    #[arg(long, value_name = "NAME", value_parser = policy(&SCHEDULERS), help_heading = RESEARCH, hide_short_help = true)]
    pub(crate) scheduler: Option<String>,

    /// Change one setting; repeatable. `marline reference settings` lists the keys and their values
    #[arg(long, value_name = "KEY=VALUE", help_heading = RESEARCH, hide_short_help = true)]
    pub(crate) set: Vec<Set>,

    /// Write a qlog file for each QUIC connection into DIR, which is created if it does not exist
    #[arg(long, value_name = "DIR", help_heading = RESEARCH, hide_short_help = true)]
    pub(crate) qlog: Option<PathBuf>,
}

impl TransportFlags {
    pub(crate) fn config(&self) -> Result<TransportConfig, Failure> {
        let mut config = self.profile().config();
        self.adjust(&mut config)?;
        Ok(config)
    }

    /// Whether one of these flags is given, which only QUIC can follow.
    pub(crate) fn any_is_given(&self) -> bool {
        let Self {
            profile,
            cc,
            scheduler,
            set,
            qlog,
        } = self;
        profile.is_some()
            || cc.is_some()
            || scheduler.is_some()
            || !set.is_empty()
            || qlog.is_some()
    }

    pub(crate) fn profile(&self) -> Profile {
        self.profile.unwrap_or_default()
    }

    /// Applies the other flags to the configuration of the profile.
    ///
    /// # Errors
    /// A setting needs another one that is not set.
    pub(crate) fn adjust(&self, config: &mut TransportConfig) -> Result<(), Failure> {
        let flag = |name: &'static str, key: &str, value: &Option<String>| {
            let value = value.as_deref().map(RawValue::from);
            value.map(|value| (name.to_owned(), Set::new(key, value)))
        };
        let flags = [
            flag("--cc", "cc", &self.cc),
            flag("--scheduler", "multipath.scheduler", &self.scheduler),
        ];
        let sets = self
            .set
            .iter()
            .map(|set| (format!("--set {}", set.text), set.clone()));
        for (name, set) in flags.into_iter().flatten().chain(sets) {
            set.apply(config)
                .map_err(|why| Failure::Usage(format!("{name}: {}", why.text)))?;
        }
        Ok(())
    }

    /// Creates the directory for logs.
    pub(crate) fn qlog_directory(&self) -> Result<Option<PathBuf>, Failure> {
        if let Some(directory) = &self.qlog {
            make_directory(directory)?;
        }
        Ok(self.qlog.clone())
    }
}

/// One setting, by its dotted key.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    /// As the user wrote it.
    text: String,
    written: Vec<(String, RawValue)>,
}

impl Set {
    /// `value` for the dotted key `key`.
    fn new(key: &str, value: RawValue) -> Self {
        let text = format!("{key}={value}");
        let inside = |value, key: &str| RawValue::Table(vec![(key.to_owned(), value)]);
        let mut keys = key.split('.').rev();
        let last = keys.next().unwrap_or_default().to_owned();
        let (key, value) = keys.fold((last, value), |(key, value), outer| {
            (outer.to_owned(), inside(value, &key))
        });
        Self {
            text,
            written: vec![(key, value)],
        }
    }

    fn apply(&self, config: &mut TransportConfig) -> Result<(), Refused> {
        apply(TransportConfig::SETTINGS, config, &self.written)
    }
}

impl std::str::FromStr for Set {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((key, value)) = text.split_once('=') else {
            return Err("write it as KEY=VALUE, as in receive_window=4MB".to_owned());
        };
        let value = RawValue::parse(value);
        if is_key(key.trim(), INITIAL_WINDOW)
            && let Some(text) = instead_of_initial_window(&value)
        {
            return Err(text);
        }
        let set = Self {
            text: text.to_owned(),
            ..Self::new(key.trim(), value)
        };
        // A complete configuration, in which settings find the ones that they need.
        let mut config = Profile::Multipath.config();
        match set.apply(&mut config) {
            Ok(()) => Ok(set),
            Err(why) => Err(why.to_string()),
        }
    }
}

/// Creates `directory` unless it exists.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        let directory = directory.display();
        Failure::Failed(format!(
            "cannot create the directory {directory}: {error}; choose another"
        ))
    })
}
