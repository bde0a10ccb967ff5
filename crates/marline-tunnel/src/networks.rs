//! The networks of this host that lead to the server, found by themselves.
//!
//! An interface is one if it works, has an address of the server's family, and a route to the server: a default one, or one of
//! its own. Devices of tunnels are none. Each has a place among the paths, which it keeps until it is gone.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use marline::runtime::{InterfaceAddress, NetworkChanges, Runtime};
use marline::{AssignedInterface, PathRule, PathSource, PathStatus, TokioRuntime};

use crate::caps::Caps;
use crate::mode::Mode;
use crate::restore::is_tunnel;
use crate::routing::Routing;

/// Networks that are used at a time.
const PLACES: usize = 4;

/// Those of [`Mode::Save`] that cost money, beside these.
const METERED_PLACES: usize = 2;

/// The interval at which networks are looked for where the kernel does not report changes.
const POLL: Duration = Duration::from_secs(2);

/// After a report, others follow: a network comes with a link, addresses and routes.
const SETTLED: Duration = Duration::from_millis(100);

/// Names of interfaces that lead to mobile networks: those of systemd, of Android's modems, and of serial lines.
const MOBILE: [&str; 3] = ["ww", "rmnet", "ppp"];

/// Whether an interface leads to a mobile network, which may cost money.
pub(crate) fn is_mobile(name: &str) -> bool {
    let kind = std::fs::read_to_string(format!("/sys/class/net/{name}/uevent"));
    let is_modem = kind.is_ok_and(|kind| kind.lines().any(|line| line == "DEVTYPE=wwan"));
    is_modem || MOBILE.iter().any(|prefix| name.starts_with(prefix))
}

/// The status of the path of an interface.
fn status_of(name: &str, mode: Mode) -> PathStatus {
    match mode == Mode::Save && is_mobile(name) {
        true => PathStatus::Backup,
        false => PathStatus::Available,
    }
}

/// The place of a network among the paths.
#[derive(Debug)]
struct Place {
    interface: AssignedInterface,
    status: PathStatus,
    /// The only network that may have it: one with a cap.
    reserved_for: Option<String>,
}

impl Place {
    /// Whether a network may have it.
    fn fits(&self, network: &Network, has_cap: bool) -> bool {
        match &self.reserved_for {
            Some(name) => *name == network.name,
            None => !has_cap && self.status == network.status,
        }
    }
}

/// An interface that leads to the server.
#[derive(Debug)]
struct Network {
    name: String,
    status: PathStatus,
}

/// The networks that are used.
#[derive(Debug)]
pub(crate) struct Networks {
    runtime: TokioRuntime,
    places: Vec<Place>,
    /// The device of the tunnel.
    device: String,
    mode: Mode,
}

impl Networks {
    /// Places without networks, one for each of those with a cap.
    ///
    /// # Errors
    /// There is no runtime.
    pub(crate) fn new(device: &str, mode: Mode, caps: &Caps) -> io::Result<Self> {
        let metered = match mode {
            Mode::Save => METERED_PLACES,
            Mode::Fast | Mode::Steady => 0,
        };
        let ordinary = [PathStatus::Available; PLACES].into_iter();
        let statuses = ordinary.chain(
            [PathStatus::Backup; METERED_PLACES]
                .into_iter()
                .take(metered),
        );
        let place = |status| Place {
            interface: AssignedInterface::default(),
            status,
            reserved_for: None,
        };
        let reserved = caps.networks().map(|name| Place {
            reserved_for: Some(name.to_owned()),
            ..place(status_of(name, mode))
        });
        Ok(Self {
            runtime: TokioRuntime::current()?,
            places: statuses.map(place).chain(reserved).collect(),
            device: device.to_owned(),
            mode,
        })
    }

    /// A rule for each place.
    pub(crate) fn rules(&self, caps: &Caps) -> Vec<PathRule> {
        let rule = |place: &Place| {
            let rule = PathRule {
                status: place.status,
                ..PathRule::new(PathSource::Assigned(place.interface.clone()))
            };
            match &place.reserved_for {
                Some(name) => caps.capped(rule, name),
                None => rule,
            }
        };
        self.places.iter().map(rule).collect()
    }

    /// The interfaces that have a place.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.places.iter().map(|place| place.interface.name());
        names.flatten().collect()
    }

    /// Looks for networks that lead to one of `servers`; returns whether others are used now.
    pub(crate) fn update(&self, servers: &[SocketAddr]) -> bool {
        // What cannot be read stays as it was.
        let Ok(found) = self.find(servers) else {
            return false;
        };
        let before = self.names();
        let has_cap = |network: &Network| {
            let mut places = self.places.iter();
            places.any(|place| place.reserved_for.as_ref() == Some(&network.name))
        };
        let fits = |place: &Place, network: &Network| place.fits(network, has_cap(network));
        for place in &self.places {
            let name = place.interface.name();
            let stays =
                |network: &Network| Some(&network.name) == name.as_ref() && fits(place, network);
            if name.is_some() && !found.iter().any(stays) {
                place.interface.assign(None);
            }
        }
        for network in &found {
            let is_used = self.names().contains(&network.name);
            let is_free = |place: &&Place| place.interface.name().is_none() && fits(place, network);
            if !is_used && let Some(place) = self.places.iter().find(is_free) {
                place.interface.assign(Some(network.name.clone()));
            }
        }
        self.names() != before
    }

    /// The networks that lead to one of `servers`: the one that the system prefers comes first.
    fn find(&self, servers: &[SocketAddr]) -> io::Result<Vec<Network>> {
        let mut routing = Routing::open()?;
        let addresses = self.runtime.interfaces()?;
        let mut found = Vec::<Network>::new();
        for server in servers {
            // No network leads to this host itself; without a route, none leads anywhere.
            if routing.is_local(server.ip()).unwrap_or(false) {
                continue;
            }
            let preferred = self.runtime.source_for(*server, None).ok();
            let mut usable: Vec<_> = addresses
                .iter()
                .filter(|one| self.is_usable(one, server.ip()))
                .collect();
            usable.sort_by_key(|one| (Some(one.address) != preferred, one.index));
            for InterfaceAddress {
                name,
                address,
                index,
                ..
            } in usable
            {
                let is_known = found.iter().any(|network| network.name == *name);
                let Some(index) = index.filter(|_| !is_known) else {
                    continue;
                };
                if routing.leads_to(server.ip(), index, *address)? {
                    found.push(Network {
                        name: name.clone(),
                        status: status_of(name, self.mode),
                    });
                }
            }
        }
        Ok(found)
    }

    /// Whether an address may be that of a network.
    fn is_usable(&self, one: &InterfaceAddress, server: IpAddr) -> bool {
        let is_of_link = match one.address {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.is_unicast_link_local(),
        };
        one.is_up
            && one.name != self.device
            && !is_tunnel(&one.name)
            && one.address.is_ipv4() == server.is_ipv4()
            && !one.address.is_loopback()
            && !is_of_link
    }

    /// Follows the networks that lead to `server`, as the kernel reports that something has changed.
    pub(crate) async fn follow(
        &self,
        server: SocketAddr,
        on_change: impl Fn(&[String]),
    ) -> Infallible {
        let mut changes = self.runtime.network_changes();
        loop {
            if self.update(&[server]) {
                on_change(&self.names());
            }
            match &mut changes {
                Some(changes) => {
                    changed(&mut **changes).await;
                    tokio::time::sleep(SETTLED).await;
                }
                None => tokio::time::sleep(POLL).await,
            }
        }
    }
}

async fn changed(changes: &mut dyn NetworkChanges) {
    poll_fn(|cx| changes.poll_change(cx)).await;
}

/// [`Networks::follow`], if there are any.
pub(crate) async fn follow(
    networks: Option<&Networks>,
    server: SocketAddr,
    on_change: impl Fn(&[String]),
) -> Infallible {
    match networks {
        Some(networks) => networks.follow(server, on_change).await,
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn modems_and_what_is_named_as_one_are_mobile() {
        for (name, expected) in [
            ("wwan0", true),
            ("wwp0s20u4", true),
            ("ppp0", true),
            ("rmnet_data0", true),
            ("wlan0", false),
            ("eth0", false),
        ] {
            assert_eq!(is_mobile(name), expected, "{name}");
        }
    }

    #[tokio::test]
    async fn loopback_is_no_network() {
        let caps = Caps::open(&[], Path::new("none")).unwrap();
        let networks = Networks::new("tun-none", Mode::Fast, &caps).unwrap();
        networks.update(&["127.0.0.1:443".parse().unwrap()]);
        assert!(networks.names().is_empty(), "{networks:?}");
        assert_eq!(networks.rules(&caps).len(), PLACES);
    }

    #[tokio::test]
    async fn a_network_with_a_cap_has_the_place_with_its_cap() {
        let directory = tempfile::tempdir().unwrap();
        let caps = Caps::open(&["wwan0=5GB".parse().unwrap()], directory.path()).unwrap();
        let networks = Networks::new("tun-none", Mode::Save, &caps).unwrap();
        let rules = networks.rules(&caps);
        let place = rules
            .iter()
            .position(|rule| rule.cap_bytes == Some(5_000_000_000));
        let place = place.unwrap();
        assert_eq!(rules[place].status, PathStatus::Backup);
        let fitting = |name: &str, has_cap| {
            let network = Network {
                name: name.to_owned(),
                status: status_of(name, Mode::Save),
            };
            let places = networks.places.iter().enumerate();
            let places = places.filter(|(_, place)| place.fits(&network, has_cap));
            places.map(|(number, _)| number).collect::<Vec<_>>()
        };
        assert_eq!(fitting("wwan0", true), [place]);
        assert_eq!(fitting("wwan1", false), [PLACES, PLACES + 1]);
    }
}
