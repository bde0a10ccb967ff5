//! Network namespaces: one for the balancer, and one for each machine and for the clients, joined to it by a pair of devices.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::JoinHandle;

use marline_lab::emu::Namespace;

use crate::machines::IDS;
use crate::namespaces::{ip, join, namespace};

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
        let network = Self {
            balancer: namespace()?,
            clients: namespace()?,
            machines: IDS.iter().map(|_| namespace()).collect::<Result<_, _>>()?,
        };
        // Clients and translator are of one machine.
        ip(&network.clients, "link set lo up")?;
        network.join(&network.clients, CLIENTS)?;
        for address in TRANSLATED {
            let address = of_network(CLIENTS, address);
            ip(
                &network.clients,
                &format!("address add {address}/24 dev uplink"),
            )?;
        }
        for (machine, id) in network.machines.iter().zip(IDS) {
            network.join(machine, id)?;
        }
        Ok(network)
    }

    /// Joins a namespace to that of the balancer by the network with this number.
    fn join(&self, namespace: &Arc<Namespace>, number: u8) -> Result<(), String> {
        let name = format!("to{number}");
        join(&self.balancer, &name, namespace, "uplink")?;
        for (namespace, device, host) in [(&self.balancer, &*name, 1), (namespace, "uplink", 2)] {
            let address = of_network(number, host);
            ip(namespace, &format!("address add {address}/24 dev {device}"))?;
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
