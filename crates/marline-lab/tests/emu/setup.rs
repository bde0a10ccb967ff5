//! Two hosts and a link between them, where the machine allows it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use marline_lab::emu::{Emulation, IpPacket};
use marline_link::{Duplex, Seed};
use marline_sim::fabric::{EcmpHash, Fabric, Node, Plan};

use crate::link::Spec;

/// Held during an emulation: two at a time would delay each other.
static RUN_LOCK: Mutex<()> = Mutex::new(());

pub(crate) struct Pair {
    pub(crate) emulation: Emulation,
    pub(crate) client: Node,
    pub(crate) server: Node,
    _alone: MutexGuard<'static, ()>,
}

/// A client and a server, joined by a link.
pub(crate) struct Network<B> {
    pub(crate) fabric: Fabric<B>,
    pub(crate) client: Node,
    pub(crate) server: Node,
}

/// A client and a server; both directions of the link are as in `spec`.
pub(crate) fn network<B: Send + 'static>(spec: Spec, seed: Seed) -> Network<B> {
    let mut plan = Plan::new();
    let (client, server) = (plan.host("client"), plan.host("server"));
    let wires = Duplex::new(spec.build(seed.of("there")), spec.build(seed.of("back")));
    plan.join("link", Box::new(wires), &[client, server])
        .unwrap();
    Network {
        fabric: plan.build().unwrap(),
        client,
        server,
    }
}

pub(crate) fn exclusive() -> MutexGuard<'static, ()> {
    RUN_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the emulation; prints the reason and returns `None` if this machine lacks a privilege for it.
pub(crate) fn start(fabric: Fabric<IpPacket>, client: Node, server: Node) -> Option<Pair> {
    let alone = exclusive();
    match Emulation::start(fabric, EcmpHash::Mixed) {
        Ok(emulation) => Some(Pair {
            emulation,
            client,
            server,
            _alone: alone,
        }),
        Err(error) if error.is_missing_privilege() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub(crate) fn pair(spec: Spec) -> Option<Pair> {
    let Network {
        fabric,
        client,
        server,
    } = network(spec, Seed::new(1));
    start(fabric, client, server)
}
