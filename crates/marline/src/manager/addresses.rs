//! The present local address of a rule's path.

use std::net::{IpAddr, SocketAddr};

use super::policy::PathSource;
use crate::runtime::{InterfaceAddress, Runtime, UdpSocket};

/// The host's addresses at one point in time.
pub(super) struct Addresses<'r> {
    runtime: &'r dyn Runtime,
    /// `None` if the system does not list them.
    list: Option<Vec<InterfaceAddress>>,
}

impl<'r> Addresses<'r> {
    /// The present addresses.
    pub(super) fn now(runtime: &'r dyn Runtime) -> Self {
        Self {
            runtime,
            list: runtime.interfaces().ok(),
        }
    }

    /// The address of `source` from which `remote` can be reached: `known` if it is still one of them, else
    /// the first.
    pub(super) fn of(
        &self,
        source: &PathSource,
        known: Option<IpAddr>,
        remote: IpAddr,
    ) -> Option<IpAddr> {
        let fits = |address: &IpAddr| address.is_ipv4() == remote.to_canonical().is_ipv4();
        match source {
            PathSource::Address(address) => Some(*address)
                .filter(fits)
                .filter(|address| self.has(*address)),
            PathSource::Interface(_) | PathSource::Assigned(_) => {
                let name = source.interface()?;
                let list = self.list.as_deref().unwrap_or_default();
                let of_it = list.iter().filter(|one| one.name == name && one.is_up);
                let mut found = of_it
                    .map(|one| one.address)
                    .filter(fits)
                    .filter(|address| reaches(*address, remote));
                let first = found.clone().next();
                found.find(|address| Some(*address) == known).or(first)
            }
        }
    }

    /// Binds datagrams with the source address `local` to the interface that a rule names. Where the system
    /// does not support that, and for a rule that names an address, the system's routes select the interface.
    pub(super) fn bind(&self, socket: &dyn UdpSocket, source: &PathSource, local: IpAddr) {
        let Some(name) = source.interface() else {
            return;
        };
        let mut list = self.list.iter().flatten();
        if let Some(found) = list.find(|one| one.name == name && one.address == local) {
            socket.bind_interface(found).ok();
        }
    }

    /// Whether the system lists them.
    pub(super) fn are_listed(&self) -> bool {
        self.list.is_some()
    }

    /// The address from which the system's routes send to `remote`.
    pub(super) fn chosen(&self, remote: SocketAddr) -> Option<IpAddr> {
        self.runtime.source_for(remote, None).ok()
    }

    /// The addresses of interfaces through which `remote` may be reached, whatever the routes of the system prefer.
    pub(super) fn others(&self, remote: SocketAddr) -> Vec<IpAddr> {
        let mut list: Vec<_> = self.list.iter().flatten().collect();
        // Hardware comes before what programs create.
        list.sort_by_key(|one| one.index);
        let can_send = |one: &&InterfaceAddress| {
            one.is_up
                && !one.address.is_loopback()
                && one.address.is_ipv4() == remote.is_ipv4()
                && reaches(one.address, remote.ip())
                && self.runtime.source_for(remote, Some(one)).is_ok()
        };
        let usable = list.into_iter().filter(can_send);
        usable.map(|one| one.address).collect()
    }

    /// Whether two addresses are of one interface.
    pub(super) fn share_interface(&self, one: IpAddr, other: IpAddr) -> bool {
        let name = |address| {
            let mut list = self.list.iter().flatten();
            list.find(|known| known.address == address)
                .map(|known| &known.name)
        };
        name(one).is_some() && name(one) == name(other)
    }

    /// Binds datagrams with the source address `local` to its interface, as [`bind`](Self::bind) does.
    pub(super) fn bind_address(&self, socket: &dyn UdpSocket, local: IpAddr) {
        let mut list = self.list.iter().flatten();
        if let Some(found) = list.find(|one| one.address == local) {
            socket.bind_interface(found).ok();
        }
    }

    /// Whether the host can send from `address`. Not every such address is listed at an interface: a whole
    /// prefix can be local.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let mut list = self.list.iter().flatten();
        match list.find(|one| one.address == address) {
            Some(listed) => listed.is_up,
            None => self.runtime.bind((address, 0).into()).is_ok(),
        }
    }
}

/// Link-local addresses reach only link-local addresses.
fn reaches(address: IpAddr, remote: IpAddr) -> bool {
    let is_of_link = |address: IpAddr| match address.to_canonical() {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !is_of_link(address) || is_of_link(remote)
}

#[cfg(test)]
mod tests;
