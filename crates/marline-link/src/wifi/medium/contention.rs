//! Who speaks next.

use super::{OnAir, Speaker, WifiMedium};
use crate::Station;
use crate::wifi::phy::{ANSWER_TIMEOUT, SIFS, SLOT, answer};
use crate::wifi::station::Node;

impl<B> WifiMedium<B> {
    /// Looks for the next turn.
    pub(super) fn plan(&mut self) {
        self.turn = None;
        if self.on_air.is_none() {
            let rivals = self
                .rivals
                .iter()
                .map(|rival| rival.backoff.turn(self.idle_from));
            let nodes = self
                .nodes
                .iter()
                .filter(|node| self.target(node).is_some())
                .map(|node| node.turn(self.idle_from));
            self.turn = nodes.chain(rivals).min();
        }
    }

    /// Whom `node` would speak to now.
    pub(super) fn target(&self, node: &Node<B>) -> Option<Station> {
        node.next_hop(|hop| !self.nodes[hop].away)
    }

    /// When somebody takes the medium next, if no station speaks.
    pub(super) fn next_taken(&self) -> Option<u64> {
        let wanted = self.others.iter().map(|other| other.wants_at).min()?;
        Some(wanted.max(self.idle_from))
    }

    /// Somebody's turn is at `at`.
    pub(super) fn begin(&mut self, at: u64) {
        let slots = self.slots_until(at);
        let mut speakers = 0;
        let mut longest = 0;
        for rival in &mut self.rivals {
            rival.speaks = rival.backoff.turn(self.idle_from) == at;
            if rival.speaks {
                speakers += 1;
                longest = longest.max(self.air.collided(rival.ppdu.bytes()));
            } else {
                rival.backoff.freeze(slots);
            }
        }
        let mut speaker = None;
        for index in 0..self.nodes.len() {
            let node = &self.nodes[index];
            let due = node.turn(self.idle_from) == at;
            let target = self.target(node).filter(|_| due);
            let node = &mut self.nodes[index];
            node.speaks_to = target;
            if let Some(hop) = target {
                let ppdu = node.speak(hop);
                speakers += 1;
                longest = longest.max(self.air.collided(ppdu.bytes()));
                speaker = Some((index, hop, ppdu));
            } else {
                node.backoff.freeze(slots);
            }
        }
        if speakers > 1 {
            self.collide(at + longest + ANSWER_TIMEOUT, speaker.is_some());
        } else if let Some((node, hop, ppdu)) = speaker {
            self.on_air = Some(OnAir {
                ends: at + self.air.alone(ppdu.bytes()),
                speaker: Some(Speaker {
                    node,
                    hop,
                    mpdus: ppdu.mpdus(),
                }),
            });
        } else if let Some(rival) = self.rivals.iter_mut().find(|rival| rival.speaks) {
            rival.backoff.succeed();
            self.idle_from = at + self.air.alone(rival.ppdu.bytes()) + answer(rival.ppdu.mpdus());
        }
    }

    /// Several speak, until `ends`; `nodes` if not only contenders do.
    fn collide(&mut self, ends: u64, nodes: bool) {
        for rival in self.rivals.iter_mut().filter(|rival| rival.speaks) {
            rival.backoff.fail();
        }
        if nodes {
            self.on_air = Some(OnAir {
                ends,
                speaker: None,
            });
        } else {
            self.idle_from = ends;
        }
    }

    /// Somebody takes the medium at `at`.
    pub(super) fn take(&mut self, at: u64) {
        self.interrupt(at);
        if let Some(other) = self.others.iter_mut().min_by_key(|other| other.wants_at) {
            self.idle_from = other.take(at);
        }
    }

    /// Everybody who waits for the medium backs off.
    pub(super) fn interrupt(&mut self, at: u64) {
        let slots = self.slots_until(at);
        for rival in &mut self.rivals {
            rival.backoff.freeze(slots);
            rival.backoff.defer();
        }
        for node in &mut self.nodes {
            node.backoff.freeze(slots);
            if node.is_waiting() {
                node.defer();
            }
        }
    }

    /// Slots between the beginning of the grid and `at`.
    fn slots_until(&self, at: u64) -> u64 {
        at.saturating_sub(self.idle_from + SIFS) / SLOT
    }
}
