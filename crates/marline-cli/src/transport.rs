//! Flags that say how QUIC behaves, shared by server and client.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use marline::TransportConfig;
use marline::congestion::Algorithm;
use serde::Deserialize;

use crate::failure::Failure;

/// A named set of policies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Profile {
    /// QUIC as its RFCs have it: CUBIC, HyStart++, adaptive loss detection
    #[default]
    Plain,
}

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
}

/// How QUIC behaves.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TransportFlags {
    /// The set of policies to use
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) profile: Option<Profile>,

    /// The congestion controller to use instead of the profile's
    #[arg(long, value_name = "NAME", value_enum)]
    pub(crate) cc: Option<Congestion>,

    /// Write a qlog file for each QUIC connection into DIR, which is made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) qlog: Option<PathBuf>,
}

impl TransportFlags {
    pub(crate) fn config(&self) -> Arc<TransportConfig> {
        let mut config = match self.profile.unwrap_or_default() {
            Profile::Plain => TransportConfig::default(),
        };
        if let Some(congestion) = self.cc {
            config.controller = Arc::new(match congestion {
                Congestion::NewReno => Algorithm::NewReno,
                Congestion::Cubic => Algorithm::Cubic,
                Congestion::Bbr => Algorithm::Bbr,
            });
        }
        Arc::new(config)
    }

    /// Makes the directory for logs.
    pub(crate) fn qlog_directory(&self) -> Result<Option<PathBuf>, Failure> {
        if let Some(directory) = &self.qlog {
            make_directory(directory)?;
        }
        Ok(self.qlog.clone())
    }
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
