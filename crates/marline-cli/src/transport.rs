//! Flags that say how QUIC behaves, shared by server and client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use marline::congestion::Algorithm;
use marline::scheduling::path::PathAlgorithm;
use marline::{Profile, TransportConfig};
use serde::{Deserialize, Deserializer, de};

use crate::failure::Failure;

/// A congestion controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Congestion {
    /// RFC 9002
    #[value(name = "newreno")]
    NewReno,
    /// RFC 9438
    Cubic,
    /// BBR version 1
    Bbr,
    /// NewReno, whose windows on several paths are coupled: where they meet, they take one share
    Olia,
}

/// How QUIC behaves.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TransportFlags {
    /// The set of policies to use
    #[arg(long, value_name = "NAME", value_parser = profiles())]
    pub(crate) profile: Option<Profile>,

    /// The congestion controller to use instead of the profile's
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) cc: Option<Congestion>,

    /// What decides which path carries the next packet that this end sends; switches multipath on
    #[arg(long, value_name = "NAME", value_parser = schedulers())]
    pub(crate) scheduler: Option<PathAlgorithm>,

    /// Write a qlog file for each QUIC connection into DIR, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

impl TransportFlags {
    pub(crate) fn config(&self) -> TransportConfig {
        let mut config = self.profile().config();
        self.adjust(&mut config);
        config
    }

    pub(crate) fn profile(&self) -> Profile {
        self.profile.unwrap_or_default()
    }

    /// Has what other flags say replace what the profile says.
    pub(crate) fn adjust(&self, config: &mut TransportConfig) {
        if let Some(congestion) = self.cc {
            config.controller = Arc::new(match congestion {
                Congestion::NewReno => Algorithm::NewReno,
                Congestion::Cubic => Algorithm::Cubic,
                Congestion::Bbr => Algorithm::Bbr,
                Congestion::Olia => Algorithm::Olia,
            });
        }
        if let Some(scheduler) = self.scheduler {
            config.multipath.get_or_insert_default().scheduler =
                Arc::new(move || scheduler.build());
        }
    }

    /// Makes the directory for logs.
    pub(crate) fn qlog_directory(&self) -> Result<Option<PathBuf>, Failure> {
        if let Some(directory) = &self.qlog {
            make_directory(directory)?;
        }
        Ok(self.qlog.clone())
    }
}

/// Reads the name of a profile, and lists them in the help.
fn profiles() -> impl TypedValueParser<Value = Profile> {
    let name = |profile: Profile| PossibleValue::new(profile.name()).help(profile.about());
    PossibleValuesParser::new(Profile::ALL.map(name)).try_map(|name| name.parse::<Profile>())
}

/// Reads the name of a path scheduler, and lists them in the help.
fn schedulers() -> impl TypedValueParser<Value = PathAlgorithm> {
    let about = |algorithm: PathAlgorithm| match algorithm {
        PathAlgorithm::Rr => "One path after the other",
        PathAlgorithm::Lrf => "The path with the lowest round-trip time that has room",
        PathAlgorithm::Ecf => "A slower path only if that completes the transfer earlier",
        PathAlgorithm::SaEcf => "The same, for each stream on its own",
        PathAlgorithm::Hbes => "The path on which the packet arrives first, its queue included",
        PathAlgorithm::Redundant => "Every packet on all paths",
        PathAlgorithm::WaterFilling => {
            "A slower path only for what faster ones would deliver later"
        }
    };
    let name =
        move |algorithm: PathAlgorithm| PossibleValue::new(algorithm.name()).help(about(algorithm));
    PossibleValuesParser::new(PathAlgorithm::ALL.map(name))
        .try_map(|name| name.parse::<PathAlgorithm>())
}

/// Reads the name of a profile from a configuration file.
pub(crate) fn profile<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Profile>, D::Error> {
    let name = String::deserialize(from)?;
    name.parse().map(Some).map_err(de::Error::custom)
}

/// Makes `directory` unless it exists.
pub(crate) fn make_directory(directory: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(directory).map_err(|error| {
        let directory = directory.display();
        Failure::Failed(format!(
            "cannot make the directory {directory}: {error}; choose another"
        ))
    })
}
