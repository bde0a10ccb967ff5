//! Wi-Fi channels shared by several links.

use marline_link::spec::{ChannelSpec, SpecError};
use serde::Serialize;

use super::{LinkDef, Topology};

/// A Wi-Fi channel: all stations on it defer to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChannelDef {
    /// Its name, to which its links refer.
    pub name: String,
    /// The settings shared by its stations and links, as in `wifi.phy=ht40, wifi.mcs=15`.
    pub spec: String,
    /// Stations with settings of their own.
    pub stations: Vec<StationDef>,
}

/// A node's own settings on a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StationDef {
    /// The node.
    pub node: String,
    /// Its settings, as in `wifi.acks=2`.
    pub spec: String,
}

/// A channel, its stations and its links.
#[derive(Clone, Debug)]
pub struct Channel<'a> {
    /// The specification it is built from.
    pub spec: ChannelSpec,
    /// The node at each station.
    pub stations: Vec<&'a str>,
    /// The links, in the order of the topology.
    pub links: Vec<&'a LinkDef>,
}

impl ChannelDef {
    /// The links of the channel.
    pub fn links<'a>(&'a self, topology: &'a Topology) -> impl Iterator<Item = &'a LinkDef> {
        let of_this = |link: &&LinkDef| link.channel.as_ref() == Some(&self.name);
        topology.links.iter().filter(of_this)
    }

    /// Reads the channel with its stations, which are the ends of its links, and its links.
    ///
    /// # Errors
    /// A description is invalid.
    pub fn read<'a>(&'a self, topology: &'a Topology) -> Result<Channel<'a>, SpecError> {
        let mut channel = Channel {
            spec: ChannelSpec::new(&self.spec)?,
            stations: Vec::new(),
            links: Vec::new(),
        };
        for link in self.links(topology) {
            let mut between = [0; 2];
            for (end, node) in between.iter_mut().zip(&link.between) {
                *end = match channel.stations.iter().position(|known| known == node) {
                    Some(station) => station,
                    None => {
                        let own = self.stations.iter().find(|own| own.node == *node);
                        let text = own.map_or("", |own| own.spec.as_str());
                        channel.stations.push(node);
                        channel.spec.add_station(text)?
                    }
                };
            }
            channel.spec.add_link(between, &link.spec)?;
            channel.links.push(link);
        }
        Ok(channel)
    }
}
