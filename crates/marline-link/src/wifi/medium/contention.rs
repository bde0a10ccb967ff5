//! Contention for the medium.

use super::{Transmission, Transmitter, WifiMedium};
use crate::Station;
use crate::wifi::phy::{ANSWER_TIMEOUT, SIFS, SLOT, answer};
use crate::wifi::station::Node;

impl<B> WifiMedium<B> {
    /// Determines the time at which the next station gains access.
    pub(super) fn plan(&mut self) {
        self.next_access = None;
        if self.on_air.is_none() {
            let saturated = self
                .saturated
                .iter()
                .map(|contender| contender.backoff.access_time(self.idle_from));
            let nodes = self
                .nodes
                .iter()
                .filter(|node| self.target(node).is_some())
                .map(|node| node.access_time(self.idle_from));
            self.next_access = nodes.chain(saturated).min();
        }
    }

    /// The next hop to which `node` would transmit now.
    pub(super) fn target(&self, node: &Node<B>) -> Option<Station> {
        node.next_hop(|hop| !self.nodes[hop].away)
    }

    /// Time of the next occupation by interference, without a transmission.
    pub(super) fn next_occupation(&self) -> Option<u64> {
        let due = self
            .interferers
            .iter()
            .map(|interferer| interferer.due_at)
            .min()?;
        Some(due.max(self.idle_from))
    }

    /// Grants access to stations at `at`.
    pub(super) fn begin(&mut self, at: u64) {
        let slots = self.slots_until(at);
        let mut transmitters = 0;
        let mut longest = 0;
        for contender in &mut self.saturated {
            contender.transmits = contender.backoff.access_time(self.idle_from) == at;
            if contender.transmits {
                transmitters += 1;
                longest = longest.max(self.airtime.collided(contender.ppdu.bytes()));
            } else {
                contender.backoff.freeze(slots);
            }
        }
        let mut transmitter = None;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let due = node.access_time(self.idle_from) == at;
            let target = self.target(node).filter(|_| due);
            let node = &mut self.nodes[index];
            node.transmits_to = target;
            if let Some(hop) = target {
                let ppdu = node.start_transmission(hop, at);
                transmitters += 1;
                longest = longest.max(node.airtime(hop).collided(ppdu.bytes()));
                transmitter = Some((index, hop, ppdu));
            } else {
                node.backoff.freeze(slots);
            }
        }
        if transmitters > 1 {
            self.collide(at + longest + ANSWER_TIMEOUT, transmitter.is_some());
        } else if let Some((node, hop, ppdu)) = transmitter {
            self.on_air = Some(Transmission {
                ends: at + self.nodes[node].airtime(hop).uncontended(ppdu.bytes()),
                transmitter: Some(Transmitter {
                    node,
                    hop,
                    mpdus: ppdu.mpdus(),
                }),
            });
        } else if let Some(contender) = self
            .saturated
            .iter_mut()
            .find(|contender| contender.transmits)
        {
            contender.backoff.succeed();
            self.idle_from = at
                + self.airtime.uncontended(contender.ppdu.bytes())
                + answer(contender.ppdu.mpdus());
        }
    }

    /// Starts a collision of several stations, until `ends`; `nodes` if not only contenders are involved.
    fn collide(&mut self, ends: u64, nodes: bool) {
        for contender in self
            .saturated
            .iter_mut()
            .filter(|contender| contender.transmits)
        {
            contender.backoff.fail();
        }
        if nodes {
            self.on_air = Some(Transmission {
                ends,
                transmitter: None,
            });
        } else {
            self.idle_from = ends;
        }
    }

    /// Starts an occupation by interference at `at`.
    pub(super) fn occupy(&mut self, at: u64) {
        self.interrupt(at);
        if let Some(interferer) = self
            .interferers
            .iter_mut()
            .min_by_key(|interferer| interferer.due_at)
        {
            self.idle_from = interferer.occupy(at);
        }
    }

    /// Freezes all backoffs, and starts one for each waiting station.
    pub(super) fn interrupt(&mut self, at: u64) {
        let slots = self.slots_until(at);
        for contender in &mut self.saturated {
            contender.backoff.freeze(slots);
            contender.backoff.defer();
        }
        for node in &mut self.nodes {
            node.backoff.freeze(slots);
            if node.is_waiting() {
                node.defer();
            }
        }
    }

    /// Number of slots between the end of the SIFS and `at`.
    fn slots_until(&self, at: u64) -> u64 {
        at.saturating_sub(self.idle_from + SIFS) / SLOT
    }
}
