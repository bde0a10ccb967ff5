//! Network namespaces: one for the balancer, and one for each machine and for the clients, joined to it by a pair of devices.

use std::io;
use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use marline_lab::emu::Namespace;

use crate::machines::IDS;

/// The network of the clients.
const CLIENTS: u8 = 100;

/// The addresses of the clients' namespace that the translator uses by turns.
const TRANSLATED: std::ops::Range<u8> = 10..20;

pub(crate) struct Network {
    balancer: Arc<Namespace>,
    clients: Arc<Namespace>,
    machines: Vec<Arc<Namespace>>,
}

impl Network {
    /// # Errors
    /// A privilege or a tool is missing.
    pub(crate) fn new() -> Result<Self, String> {
        let make = || {
            Namespace::new()
                .map(Arc::new)
                .map_err(|error| error.to_string())
        };
        let network = Self {
            balancer: make()?,
            clients: make()?,
            machines: IDS.iter().map(|_| make()).collect::<Result<_, _>>()?,
        };
        // Clients and translator are of one machine.
        ip(&network.clients, &["link", "set", "lo", "up"])?;
        network.join(&network.clients, CLIENTS)?;
        for address in TRANSLATED {
            let address = format!("{}/24", of_network(CLIENTS, address));
            ip(
                &network.clients,
                &["address", "add", &address, "dev", "uplink"],
            )?;
        }
        for (machine, id) in network.machines.iter().zip(IDS) {
            network.join(machine, id)?;
        }
        Ok(network)
    }

    /// Joins a namespace to that of the balancer by the network with this number.
    fn join(&self, namespace: &Arc<Namespace>, number: u8) -> Result<(), String> {
        let held = Held::of(namespace).map_err(|error| error.to_string())?;
        let name = format!("to{number}");
        ip(
            &self.balancer,
            &[
                "link", "add", "name", &name, "type", "veth", "peer", "name", "uplink", "netns",
                &held.path,
            ],
        )?;
        for (namespace, device, host) in [(&self.balancer, &*name, 1), (namespace, "uplink", 2)] {
            let address = format!("{}/24", of_network(number, host));
            ip(namespace, &["address", "add", &address, "dev", device])?;
            ip(namespace, &["link", "set", device, "up"])?;
        }
        Ok(())
    }

    pub(crate) fn machine(&self, id: u8) -> &Namespace {
        let position = IDS.iter().position(|known| *known == id).unwrap();
        &self.machines[position]
    }

    /// Runs `work` in a thread inside the namespace of the balancer.
    pub(crate) fn at_balancer(&self, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        spawn(Arc::clone(&self.balancer), work)
    }

    /// The same in that of the clients.
    pub(crate) fn at_clients(&self, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        spawn(Arc::clone(&self.clients), work)
    }
}

/// Runs `future` on this thread.
pub(crate) fn block_on(future: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future);
}

fn spawn(namespace: Arc<Namespace>, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    std::thread::spawn(move || namespace.inside(work).unwrap())
}

/// The address of a machine, of which the balancer's clients know nothing.
pub(crate) fn machine_address(id: u8) -> Ipv4Addr {
    of_network(id, 2)
}

/// The address of the balancer for clients.
pub(crate) fn balancer_address() -> Ipv4Addr {
    of_network(CLIENTS, 1)
}

/// The address of the translator, to which clients connect.
pub(crate) fn translator_address() -> Ipv4Addr {
    of_network(CLIENTS, 2)
}

/// The addresses from which the translator sends, in turn.
pub(crate) fn translated_address(turn: usize) -> Ipv4Addr {
    let addresses: Vec<_> = TRANSLATED.collect();
    of_network(CLIENTS, addresses[turn % addresses.len()])
}

fn of_network(number: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 9, number, host)
}

pub(crate) fn ip(namespace: &Namespace, arguments: &[&str]) -> Result<(), String> {
    let run = || Command::new("ip").args(arguments).output();
    let output = namespace.inside(run).and_then(|output| output);
    let output = output.map_err(|error| format!("cannot run `ip`: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "`ip {}`: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}

/// A thread inside a namespace, by which programs find it: it has no name.
pub(crate) struct Held {
    path: String,
    /// Dropped to end the thread.
    _end: Sender<()>,
}

impl Held {
    pub(crate) fn of(namespace: &Arc<Namespace>) -> io::Result<Self> {
        let (found, path) = channel();
        let (end, ended) = channel::<()>();
        let inside = Arc::clone(namespace);
        std::thread::spawn(move || {
            inside.inside(move || {
                let thread = std::fs::read_link("/proc/thread-self");
                let _ = found.send(thread.map(|at| format!("/proc/{}/ns/net", at.display())));
                let _ = ended.recv();
            })
        });
        let path = path.recv().map_err(io::Error::other)??;
        Ok(Self { path, _end: end })
    }

    /// The file of the namespace.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}
