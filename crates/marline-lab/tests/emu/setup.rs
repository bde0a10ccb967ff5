//! Two hosts and a link between them, where the machine allows it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use marline_lab::emu::{Emulation, IpPacket};
use marline_link::{Duplex, Seed};
use marline_sim::fabric::{EcmpHash, Fabric, Node, Plan};

use crate::link::Spec;

/// One emulation at a time: two would make each other late.
static ALONE: Mutex<()> = Mutex::new(());

pub(crate) struct Pair {
    pub(crate) emulation: Emulation,
    pub(crate) client: Node,
    pub(crate) server: Node,
    _alone: MutexGuard<'static, ()>,
}

/// A client and a server; `spec` holds each way.
pub(crate) fn network<B: Send + 'static>(spec: Spec, seed: Seed) -> (Fabric<B>, Node, Node) {
    let mut plan = Plan::new();
    let (client, server) = (plan.host("client"), plan.host("server"));
    let wires = Duplex::new(spec.build(seed.of("there")), spec.build(seed.of("back")));
    plan.join("link", Box::new(wires), &[client, server])
        .unwrap();
    (plan.build().unwrap(), client, server)
}

pub(crate) fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts it, or says why not.
pub(crate) fn start(fabric: Fabric<IpPacket>, client: Node, server: Node) -> Option<Pair> {
    let alone = alone();
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
    let (fabric, client, server) = network(spec, Seed::new(1));
    start(fabric, client, server)
}
