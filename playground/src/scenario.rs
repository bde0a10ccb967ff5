//! The input of a simulation.

use std::sync::Arc;

use marline::congestion::Algorithm;
use marline::{Profile, TransportConfig};
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Bytes of the largest file: some seconds of a phone's processor.
pub(crate) const MAX_FILE: u64 = 20_000_000;

/// The connections of a bundle, as in the laboratory's experiments.
const BUNDLED: usize = 3;

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// One link between client and server, or two beside each other, in the form of [`marline_link::LinkSpec`].
    pub links: Vec<String>,
    /// The content to load.
    pub content: Content,
    /// How.
    pub system: System,
    /// The seed of links and hosts.
    pub seed: u64,
}

impl Scenario {
    /// Reads JSON.
    ///
    /// # Errors
    /// It is not that of a scenario, or goes beyond a limit.
    pub fn read(json: &[u8]) -> Result<Self, Error> {
        let scenario: Self = serde_json::from_slice(json)?;
        if !(1..=2).contains(&scenario.links.len()) {
            return Err(Error::Links(scenario.links.len()));
        }
        match scenario.content {
            Content::File { bytes } if bytes > MAX_FILE => Err(Error::File(bytes)),
            _ => Ok(scenario),
        }
    }
}

/// The content to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Content {
    /// The page of `experiments/web/forty.json`: 40 objects.
    Page,
    /// One file.
    File {
        /// Its size.
        bytes: u64,
    },
}

/// A set of policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// [`Profile::Rfc`].
    Rfc,
    /// [`Profile::Default`].
    Default,
    /// [`Profile::Default`] with CUBIC.
    DefaultCubic,
    /// [`Profile::Default`] with version 3 of BBR.
    DefaultBbr3,
    /// [`Profile::Bundle`], three connections.
    Bundle,
    /// [`Profile::Multipath`], over both links if there are two.
    Multipath,
}

impl System {
    const fn profile(self) -> Profile {
        match self {
            Self::Rfc => Profile::Rfc,
            Self::Default | Self::DefaultCubic | Self::DefaultBbr3 => Profile::Default,
            Self::Bundle => Profile::Bundle,
            Self::Multipath => Profile::Multipath,
        }
    }

    /// The settings of both ends.
    pub(crate) fn transport(self) -> Arc<TransportConfig> {
        let mut config = self.profile().config();
        match self {
            Self::DefaultCubic => config.controller = Arc::new(Algorithm::Cubic),
            Self::DefaultBbr3 => config.controller = Arc::new(Algorithm::Bbr3),
            _ => {}
        }
        Arc::new(config)
    }

    /// How many connections the client opens.
    pub(crate) const fn connections(self) -> usize {
        match self {
            Self::Bundle => BUNDLED,
            _ => 1,
        }
    }

    /// Whether a second link is used.
    pub(crate) const fn has_paths(self) -> bool {
        matches!(self, Self::Multipath)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(links: &str, content: &str) -> Result<Scenario, Error> {
        let json = format!(
            r#"{{"links": [{links}], "content": {content}, "system": "default", "seed": 1}}"#
        );
        Scenario::read(json.as_bytes())
    }

    #[test]
    fn a_network_has_one_link_or_two() {
        let link = r#""rate=20mbps,rtt=40ms""#;
        assert!(read(link, r#""page""#).is_ok());
        assert!(read(&[link; 2].join(","), r#""page""#).is_ok());
        assert!(matches!(read("", r#""page""#), Err(Error::Links(0))));
        let three = [link; 3].join(",");
        assert!(matches!(read(&three, r#""page""#), Err(Error::Links(3))));
    }

    #[test]
    fn files_beyond_the_limit_are_refused() {
        let file = |bytes| {
            read(
                r#""rtt=40ms""#,
                &format!(r#"{{"file": {{"bytes": {bytes}}}}}"#),
            )
        };
        assert!(file(MAX_FILE).is_ok());
        assert!(matches!(file(MAX_FILE + 1), Err(Error::File(_))));
    }
}
