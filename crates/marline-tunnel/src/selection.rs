//! The packets that a client sends into its tunnel.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use ipnet::IpNet;
use marline_http::Network;

use crate::programs::ProgramChoice;

/// The word for the programs of `marline tunnel run`.
const PROGRAMS: &str = "programs";

/// The beginning of a control group.
const GROUP: &str = "cgroup:";

/// One of the destinations or programs whose packets go into a tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selected {
    /// Packets to these addresses.
    Network(IpNet),
    /// Those of programs that `marline tunnel run` starts.
    Programs,
    /// Those of programs of this control group, a path in their hierarchy.
    Group(PathBuf),
}

/// Text that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelected {
    /// It is no path of a control group.
    #[error("write the path of a control group as `systemd-cgls` shows it, as {GROUP}/media.slice")]
    Group,
    /// It is nothing of that kind.
    #[error(
        "write an address or a network, as 10.0.0.0/8, {PROGRAMS} for those of `marline tunnel run`, or a control group, as \
         {GROUP}/media.slice"
    )]
    Other,
}

impl FromStr for Selected {
    type Err = InvalidSelected;

    fn from_str(text: &str) -> Result<Self, InvalidSelected> {
        if text == PROGRAMS {
            return Ok(Self::Programs);
        }
        if let Some(path) = text.strip_prefix(GROUP) {
            let mut parts = Path::new(path).components();
            let is_group = parts.next() == Some(Component::RootDir)
                && matches!(parts.next(), Some(Component::Normal(_)))
                && parts.all(|part| matches!(part, Component::Normal(_)));
            return match is_group {
                true => Ok(Self::Group(path.into())),
                false => Err(InvalidSelected::Group),
            };
        }
        let network: Network = text.parse().map_err(|_| InvalidSelected::Other)?;
        let network = network.to_string().parse();
        network
            .map(Self::Network)
            .map_err(|_| InvalidSelected::Other)
    }
}

/// The destinations and programs whose packets go into a tunnel; all packets that the server carries if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Destinations.
    pub networks: Vec<IpNet>,
    /// Programs.
    pub programs: ProgramChoice,
}

impl Selection {
    /// Whether it has neither.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.programs.is_empty()
    }
}

impl FromIterator<Selected> for Selection {
    fn from_iter<T: IntoIterator<Item = Selected>>(all: T) -> Self {
        let mut selection = Self::default();
        for one in all {
            match one {
                Selected::Network(network) => selection.networks.push(network),
                Selected::Programs => selection.programs.run = true,
                Selected::Group(group) => selection.programs.groups.push(group),
            }
        }
        selection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_programs_are_selected() {
        let texts = ["10.0.0.0/8", "programs", "cgroup:/media.slice", "fd00::1"];
        let selection: Selection = texts.iter().map(|text| text.parse().unwrap()).collect();
        let networks: Vec<_> = selection.networks.iter().map(IpNet::to_string).collect();
        assert_eq!(networks, ["10.0.0.0/8", "fd00::1/128"]);
        assert!(selection.programs.run);
        assert_eq!(selection.programs.groups, [Path::new("/media.slice")]);
    }

    #[test]
    fn errors_say_what_to_write() {
        for text in [
            "cgroup:",
            "cgroup:/",
            "cgroup:a",
            "cgroup:/../a",
            "cgroup:/a/..",
        ] {
            assert_eq!(
                text.parse::<Selected>(),
                Err(InvalidSelected::Group),
                "{text}"
            );
        }
        for text in ["", "10.0.0.0/33", "program"] {
            assert_eq!(
                text.parse::<Selected>(),
                Err(InvalidSelected::Other),
                "{text}"
            );
        }
    }
}
