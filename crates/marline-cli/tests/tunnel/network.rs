//! Network namespaces: a client with two networks, the server of its tunnels, and a host behind the server.

use std::sync::Arc;

use marline_lab::emu::Namespace;

use crate::namespaces::{ip, join, namespace, run};

/// The address of the server, which both networks of the client lead to.
pub(crate) const SERVER: &str = "192.0.2.1";

/// The addresses of the host behind the server.
pub(crate) const HOST: [&str; 2] = ["10.3.0.2", "fd03::2"];

/// The devices of the client.
pub(crate) const PATHS: [&str; 2] = ["path0", "path1"];

pub(crate) struct Network {
    pub(crate) client: Arc<Namespace>,
    pub(crate) server: Arc<Namespace>,
    pub(crate) host: Arc<Namespace>,
}

impl Network {
    /// # Errors
    /// A privilege or a tool is missing.
    pub(crate) fn new() -> Result<Self, String> {
        let network = Self {
            client: namespace()?,
            server: namespace()?,
            host: namespace()?,
        };
        let Self {
            client,
            server,
            host,
        } = &network;
        for namespace in [client, server, host] {
            ip(namespace, "link set lo up")?;
            // Any group may send echo requests.
            set(namespace, "ipv4/ping_group_range", "0 2147483647")?;
        }
        for setting in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            set(server, setting, "1")?;
        }
        ip(server, &format!("address add {SERVER}/32 dev lo"))?;
        for (number, path) in PATHS.iter().enumerate() {
            let network = number + 1;
            join(client, path, server, &format!("to{number}"))?;
            ip(
                client,
                &format!("address add 10.{network}.0.2/24 dev {path}"),
            )?;
            ip(
                server,
                &format!("address add 10.{network}.0.1/24 dev to{number}"),
            )?;
            // Its addresses of one link come and go with the carrier.
            set(client, &format!("ipv6/conf/{path}/disable_ipv6"), "1")?;
            // As a manager of networks sets them: the first is preferred.
            ip(
                client,
                &format!(
                    "route add default via 10.{network}.0.1 dev {path} metric {}",
                    100 * network
                ),
            )?;
        }
        join(server, "behind", host, "uplink")?;
        for (namespace, device, address) in [(server, "behind", 1), (host, "uplink", 2)] {
            ip(
                namespace,
                &format!("address add 10.3.0.{address}/24 dev {device}"),
            )?;
            ip(
                namespace,
                &format!("address add fd03::{address}/64 dev {device} nodad"),
            )?;
        }
        ip(host, "route add default via 10.3.0.1")?;
        ip(host, "route add default via fd03::1")?;
        Ok(network)
    }

    /// The rules and routes of the client.
    pub(crate) fn routes(&self) -> String {
        let shown = [
            "-4 rule",
            "-6 rule",
            "-4 route show table all",
            "-6 route show table all",
        ];
        shown.map(|what| ip(&self.client, what).unwrap()).concat()
    }

    /// Cuts a network of the client, or joins it again.
    pub(crate) fn set_path(&self, number: usize, state: &str) {
        ip(&self.server, &format!("link set to{number} {state}")).unwrap();
    }

    /// Limits the rate at which the client receives by a network.
    pub(crate) fn shape(&self, number: usize, rate: &str) {
        let shaping =
            format!("qdisc add dev to{number} root tbf rate {rate} burst 32kb latency 50ms");
        run(&self.server, "tc", &shaping).unwrap();
    }

    /// Bytes that the client has received by a device.
    pub(crate) fn received(&self, device: &str) -> u64 {
        let read = || std::fs::read_to_string("/proc/thread-self/net/dev");
        let text = self.client.inside(read).unwrap().unwrap();
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(&format!("{device}:")));
        let bytes = line.unwrap().split_ascii_whitespace().next();
        bytes.unwrap().parse().unwrap()
    }
}

pub(crate) fn set(namespace: &Namespace, setting: &str, value: &str) -> Result<(), String> {
    let write = || std::fs::write(format!("/proc/sys/net/{setting}"), value);
    let written = namespace.inside(write).and_then(|written| written);
    written.map_err(|error| format!("cannot set {setting}: {error}"))
}
