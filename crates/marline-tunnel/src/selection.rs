//! The packets that a client sends into its tunnel.

use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use ipnet::IpNet;
use marline_http::Network;

use crate::names::Name;
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
    /// Packets to addresses of this name, and of those below it.
    Name(Name),
}

/// Text that selects nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSelected {
    /// It is no path of a control group.
    #[error("write the path of a control group as `systemd-cgls` shows it, as {GROUP}/media.slice")]
    Group,
    /// It is nothing of that kind.
    #[error(
        "write an address or a network, as 10.0.0.0/8, a name, as example.org, {PROGRAMS} for those of `marline tunnel run`, or a \
         control group, as {GROUP}/media.slice"
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
        let network = text.parse().ok();
        let network = network.and_then(|network: Network| network.to_string().parse().ok());
        if let Some(network) = network {
            return Ok(Self::Network(network));
        }
        // Neither an address with a mistake nor a word.
        let is_name = text.contains('.') && !text.ends_with(|c: char| c.is_ascii_digit());
        match text.parse() {
            Ok(name) if is_name => Ok(Self::Name(name)),
            _ => Err(InvalidSelected::Other),
        }
    }
}

/// The destinations, programs and names whose packets go into a tunnel; all packets that the server carries if there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Destinations.
    pub networks: Vec<IpNet>,
    /// Programs.
    pub programs: ProgramChoice,
    /// Names, those below which are meant as well.
    pub names: Vec<Name>,
}

impl Selection {
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && self.programs.is_empty() && self.names.is_empty()
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
                Selected::Name(name) => selection.names.push(name),
            }
        }
        selection
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_programs_and_names_are_selected() {
        let texts = [
            "10.0.0.0/8",
            "programs",
            "cgroup:/media.slice",
            "fd00::1",
            "Example.org",
            "corp.",
        ];
        let selection: Selection = texts.iter().map(|text| text.parse().unwrap()).collect();
        let networks: Vec<_> = selection.networks.iter().map(IpNet::to_string).collect();
        assert_eq!(networks, ["10.0.0.0/8", "fd00::1/128"]);
        assert!(selection.programs.run);
        let names: Vec<_> = selection.names.iter().map(Name::to_string).collect();
        assert_eq!(names, ["example.org", "corp"]);
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
        for text in ["", "10.0.0.0/33", "10.0.0.300", "program", "a..b"] {
            assert_eq!(
                text.parse::<Selected>(),
                Err(InvalidSelected::Other),
                "{text}"
            );
        }
    }
}
