//! The active flows, and their time-outs.

mod connections;
mod flow;
mod paths;
mod queue;
mod slots;

use std::collections::HashMap;

use ahash::RandomState;
use hashbrown::HashTable;

use connections::Connections;
pub use flow::ClientSource;
pub(crate) use flow::{Directed, Flow, FlowKey, Inspection, Phase};
pub(crate) use paths::{Path, Paths};
use queue::{Entry, Queues};
use slots::Slots;

use crate::decode::{Layers, Segment};
use crate::inspect::{End, QuicIds, other};
use crate::limits::{DEFAULT_MAX_FLOWS, LARGEST_MAX_FLOWS, MAX_UNANSWERED};

/// The time-outs and the number of flows.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The time-outs of flows.
    pub timeouts: Timeouts,
    /// Largest number of flows: before one more begins, the oldest one without traffic ends.
    pub max_flows: usize,
}

/// Time-outs in nanoseconds. The defaults are those of Tstat.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// A flow that lasts longer is recorded in parts of this length; none by default.
    pub active_ns: Option<u64>,
    /// A TCP connection without packets for this long has ended: 5 minutes.
    pub tcp_idle_ns: u64,
    /// A UDP flow without packets for this long has ended: 200 seconds.
    pub udp_idle_ns: u64,
    /// The same for a connection that is not established or is closed, and for a single datagram: 10 seconds.
    pub opening_ns: u64,
}

const SECOND_NS: u64 = 1_000_000_000;

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            active_ns: None,
            tcp_idle_ns: 300 * SECOND_NS,
            udp_idle_ns: 200 * SECOND_NS,
            opening_ns: 10 * SECOND_NS,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            timeouts: Timeouts::default(),
            max_flows: DEFAULT_MAX_FLOWS,
        }
    }
}

/// The reason for the end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Both ends sent FIN.
    Fin,
    /// An end sent RST.
    Reset,
    /// It had no packets for longer than the idle time-out.
    Idle,
    /// It lasted as long as the active time-out; its next record follows.
    Active,
    /// The same ports began another connection.
    Reused,
    /// There were too many flows.
    Evicted,
    /// The capture ended.
    Capture,
}

impl EndReason {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Reset => "reset",
            Self::Idle => "idle",
            Self::Active => "active",
            Self::Reused => "reused",
            Self::Evicted => "evicted",
            Self::Capture => "capture",
        }
    }
}

/// The position of a flow in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// A flow, and the end that sent a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) slot: Slot,
    pub(crate) sender: End,
}

/// A flow with a further key.
#[derive(Clone, Copy, Debug)]
struct Alias {
    slot: u32,
    /// Whether its ends are in the other order.
    is_swapped: bool,
}

/// Flows by key.
pub(crate) struct Table {
    options: Options,
    hasher: RandomState,
    /// Slots by the key of their flow, which is stored in the slot alone: keys here would take more memory than all
    /// else.
    index: HashTable<u32>,
    slots: Slots,
    queues: Queues,
    tickets: u32,
    next_id: u64,
    /// The flow of the previous packet, which is often that of the next one, too.
    recent: Option<Slot>,
    /// When the next flow may have ended.
    due_ns: u64,
    paths: Paths,
    /// Flows whose other direction has another path that is not known yet, by the part common to both paths, oldest
    /// first.
    one_way: HashMap<FlowKey, Vec<u32>, RandomState>,
    /// Flows with several keys.
    aliases: HashMap<FlowKey, Alias, RandomState>,
    /// QUIC connections by their IDs, which survive a change of address.
    connections: Connections,
}

impl Table {
    pub(crate) fn new(mut options: Options) -> Self {
        options.max_flows = options.max_flows.clamp(1, LARGEST_MAX_FLOWS);
        Self {
            options,
            hasher: RandomState::new(),
            index: HashTable::new(),
            slots: Slots::default(),
            queues: Queues::default(),
            tickets: 0,
            next_id: 1,
            recent: None,
            due_ns: u64::MAX,
            paths: Paths::default(),
            one_way: HashMap::default(),
            aliases: HashMap::default(),
            connections: Connections::default(),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.options.max_flows
    }

    /// The layers around the packets of flows.
    pub(crate) fn paths(&self) -> &Paths {
        &self.paths
    }

    /// The key of a packet; a flow must [have](Self::insert) it before the next packet.
    #[inline(always)]
    pub(crate) fn key(&mut self, segment: &Segment<'_>, layers: &Layers) -> Directed {
        Directed::of(segment, self.paths.number(layers), layers)
    }

    /// The path of a packet, if any flow has it.
    pub(crate) fn path(&mut self, layers: &Layers) -> Option<Path> {
        self.paths.find(layers)
    }

    /// The flow of a packet.
    #[inline(always)]
    pub(crate) fn find(&mut self, directed: &Directed) -> Option<Found> {
        let Directed { key, sender, .. } = directed;
        if let Some(slot) = self.recent
            && self.get(slot).key() == *key
        {
            let sender = *sender;
            return Some(Found { slot, sender });
        }
        let hash = self.hasher.hash_one(key);
        let is_wanted = |slot: &u32| self.slots.get(*slot).is_some_and(|flow| flow.key() == *key);
        let Some(slot) = self.index.find(hash, is_wanted) else {
            return self.find_alias(directed);
        };
        let slot = Slot(*slot);
        self.recent = Some(slot);
        let sender = *sender;
        Some(Found { slot, sender })
    }

    fn find_alias(&mut self, directed: &Directed) -> Option<Found> {
        let Directed { key, sender, .. } = directed;
        if let Some(alias) = self.aliases.get(key) {
            let sender = match alias.is_swapped {
                true => other(*sender),
                false => *sender,
            };
            let slot = Slot(alias.slot);
            return Some(Found { slot, sender });
        }
        // Of a flow whose first packets had one identifier, the answer has another one.
        let shared = key.on(self.paths.shared(key.path())?);
        if let Some(found) = self.find_answer_to_moved(directed, &shared) {
            return Some(found);
        }
        let unanswered = |slot: &&u32| {
            let flow = self.slots.get(**slot);
            flow.is_some_and(|flow| flow.sent(*sender).packets == 0)
        };
        let slot = *self.one_way.get(&shared)?.iter().find(unanswered)?;
        self.forget_one_way(&shared, slot);
        self.add_alias(Slot(slot), *key, false);
        let (slot, sender) = (Slot(slot), *sender);
        Some(Found { slot, sender })
    }

    /// The flow whose client moved, if a packet goes to its new address in the tunnel of the answers before.
    fn find_answer_to_moved(&mut self, directed: &Directed, shared: &FlowKey) -> Option<Found> {
        let Alias { slot, is_swapped } = *self.aliases.get(shared)?;
        let sender = match is_swapped {
            true => other(directed.sender),
            false => directed.sender,
        };
        let flow = self.slots.get(slot)?;
        if flow.paths(&self.paths)[sender] != Some(directed.key.path()) {
            return None;
        }
        let slot = Slot(slot);
        self.add_alias(slot, directed.key, is_swapped);
        Some(Found { slot, sender })
    }

    /// Removes a flow that is answered, or ends.
    fn forget_one_way(&mut self, shared: &FlowKey, slot: u32) {
        if let Some(slots) = self.one_way.get_mut(shared) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.one_way.remove(shared);
            }
        }
    }

    fn add_alias(&mut self, slot: Slot, key: FlowKey, is_swapped: bool) {
        let forgotten = self.get_mut(slot).add_alias(key);
        if let Some(forgotten) = forgotten {
            self.unlink(slot, &forgotten);
            self.paths.release(forgotten.path());
        }
        self.paths.acquire(key.path());
        let shared = self.paths.shared(key.path());
        let has_moved = self.get(slot).has_moved_to(&key);
        let alias = Alias {
            slot: slot.0,
            is_swapped,
        };
        self.aliases.insert(key, alias);
        if let Some(shared) = shared.filter(|_| has_moved) {
            self.aliases.insert(key.on(shared), alias);
        }
    }

    /// Removes a further key of a flow.
    fn unlink(&mut self, slot: Slot, key: &FlowKey) {
        let shared = self.paths.shared(key.path());
        for key in [Some(*key), shared.map(|shared| key.on(shared))]
            .into_iter()
            .flatten()
        {
            if self
                .aliases
                .get(&key)
                .is_some_and(|alias| alias.slot == slot.0)
            {
                self.aliases.remove(&key);
            }
        }
    }

    /// The QUIC connection whose client sends a packet from another address, which is the first one of its key.
    pub(crate) fn find_moved(&mut self, directed: &Directed, payload: &[u8]) -> Option<Found> {
        let Directed { key, sender, .. } = *directed;
        let slot = self.connections.find(directed, payload)?;
        let client = self.slots.get(slot)?.client();
        self.add_alias(Slot(slot), key, sender != client);
        let slot = Slot(slot);
        Some(Found {
            slot,
            sender: client,
        })
    }

    /// Removes a further key of a flow, with which another flow begins.
    pub(crate) fn remove_alias(&mut self, slot: Slot, key: &FlowKey) {
        if self.aliases.contains_key(key) {
            self.unlink(slot, key);
            self.get_mut(slot).remove_alias(key);
            self.paths.release(key.path());
        }
    }

    /// Sets the known IDs of a QUIC connection.
    pub(crate) fn set_quic(&mut self, slot: Slot, ids: QuicIds) {
        let flow = self.slots.get_mut(slot.0);
        let flow = flow.expect("the slot of a flow that is in the index is occupied");
        let key = flow.key();
        let known = &mut flow.more_mut().quic;
        if let Some(before) = known.take() {
            self.connections.remove(&key, &before, slot.0);
        }
        self.connections.insert(&key, &ids, slot.0);
        *known = Some(Box::new(ids));
    }

    /// The flow in a slot that [`find`](Self::find) or [`insert`](Self::insert) returned and that was not removed since.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Flow {
        let flow = self.slots.get(slot.0);
        flow.expect("the slot of a flow that is in the index is occupied")
    }

    /// The same, mutable.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Flow {
        let flow = self.slots.get_mut(slot.0);
        flow.expect("the slot of a flow that is in the index is occupied")
    }

    /// The number of the next flow.
    pub(crate) fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub(crate) fn insert(&mut self, flow: Flow) -> Slot {
        let key = flow.key();
        let slot = self.slots.insert(flow);
        self.paths.acquire(key.path());
        if let Some(shared) = self.paths.shared(key.path()) {
            let slots = self.one_way.entry(key.on(shared)).or_default();
            if slots.len() >= MAX_UNANSWERED {
                slots.remove(0);
            }
            slots.push(slot);
        }
        let (slots, hasher) = (&self.slots, &self.hasher);
        let hash_of = |slot: &u32| {
            slots
                .get(*slot)
                .map_or(0, |flow| hasher.hash_one(flow.key()))
        };
        self.index
            .insert_unique(hasher.hash_one(key), slot, hash_of);
        self.recent = Some(Slot(slot));
        self.enqueue(slot);
        Slot(slot)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Flow {
        let flow = self.slots.remove(slot.0);
        let flow = flow.expect("the slot of a flow that is in the index is occupied");
        let key = flow.key();
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == slot.0) {
            entry.remove();
        }
        if let Some(shared) = self.paths.shared(key.path()) {
            self.forget_one_way(&key.on(shared), slot.0);
        }
        if let Some(more) = flow.more() {
            for alias in &more.aliases {
                self.unlink(slot, &alias.key);
            }
            if let Some(ids) = &more.quic {
                self.connections.remove(&key, ids, slot.0);
            }
        }
        self.recent = None;
        flow
    }

    /// Releases the paths of a removed flow, whose record is written.
    pub(crate) fn release(&mut self, flow: &Flow) {
        let aliases = flow.more().map_or(&[][..], |more| &more.aliases);
        for alias in aliases {
            self.paths.release(alias.key.path());
        }
        self.paths.release(flow.key().path());
    }

    /// Keeps the path of a packet until [`release_key`](Self::release_key), whichever flows end.
    #[inline(always)]
    pub(crate) fn hold_key(&mut self, key: &FlowKey) {
        self.paths.acquire(key.path());
    }

    /// Releases the packet of [`hold_key`](Self::hold_key), which now belongs to a flow.
    #[inline(always)]
    pub(crate) fn release_key(&mut self, key: &FlowKey) {
        self.paths.release(key.path());
    }

    /// Replaces a flow by its next part. Returns the part that ended.
    pub(crate) fn replace(&mut self, slot: Slot, next: Flow) -> Flow {
        let ended = std::mem::replace(self.get_mut(slot), next);
        self.enqueue(slot.0);
        ended
    }

    /// Moves the flow in `slot` to another queue if its phase has changed: another time-out then applies.
    #[inline]
    pub(crate) fn requeue_if_changed(&mut self, slot: Slot) {
        if let Some(flow) = self.slots.get(slot.0)
            && flow.queued != flow.phase()
        {
            self.enqueue(slot.0);
        }
    }

    fn enqueue(&mut self, slot: u32) {
        let Some(flow) = self.slots.get_mut(slot) else {
            return;
        };
        self.tickets = self.tickets.wrapping_add(1);
        flow.ticket = self.tickets;
        flow.queued = flow.phase();
        let entry = Entry {
            slot,
            ticket: self.tickets,
            seen_ns: flow.last_ns,
        };
        let due_ns = entry
            .seen_ns
            .saturating_add(flow.idle_timeout_ns(&self.options.timeouts));
        self.due_ns = self.due_ns.min(due_ns);
        let key = flow.key();
        self.queues
            .of(flow.queued, key.transport())
            .push_back(entry);
    }

    /// A flow that has been idle for too long at `now_ns`, if any.
    #[inline]
    pub(crate) fn next_idle(&mut self, now_ns: u64) -> Option<Slot> {
        if now_ns <= self.due_ns {
            return None;
        }
        self.find_idle(now_ns)
    }

    fn find_idle(&mut self, now_ns: u64) -> Option<Slot> {
        let mut due_ns = u64::MAX;
        for queue in 0..Queues::COUNT {
            while let Some(entry) = self.current_front(queue) {
                let Some(flow) = self.slots.get(entry.slot) else {
                    break;
                };
                let timeout = flow.idle_timeout_ns(&self.options.timeouts);
                let last = flow.last_ns;
                if now_ns > last.saturating_add(timeout) {
                    return Some(Slot(entry.slot));
                }
                if last == entry.seen_ns {
                    due_ns = due_ns.min(last.saturating_add(timeout));
                    break;
                }
                self.move_back(queue);
            }
        }
        self.due_ns = due_ns;
        None
    }

    /// The flow to end to make room for another: one that is closed or opening, else any, the one with the oldest last
    /// packet (by the clock algorithm).
    pub(crate) fn oldest(&mut self) -> Option<Slot> {
        let mut oldest: Option<Entry> = None;
        for queue in 0..Queues::COUNT {
            while let Some(entry) = self.current_front(queue) {
                let flow = self.slots.get(entry.slot);
                if flow.is_some_and(|flow| flow.last_ns != entry.seen_ns) {
                    self.move_back(queue);
                    continue;
                }
                if oldest.is_none_or(|oldest| entry.seen_ns < oldest.seen_ns) {
                    oldest = Some(entry);
                }
                break;
            }
            if queue + 1 == Queues::UNESTABLISHED && oldest.is_some() {
                break;
            }
        }
        oldest.map(|entry| Slot(entry.slot))
    }

    /// The first entry of a queue that is not stale.
    fn current_front(&mut self, queue: usize) -> Option<Entry> {
        loop {
            let entry = *self.queues.at(queue).front()?;
            let flow = self.slots.get(entry.slot);
            if flow.is_some_and(|flow| flow.ticket == entry.ticket) {
                return Some(entry);
            }
            self.queues.at(queue).pop_front();
        }
    }

    /// Moves the first entry of a queue, whose flow had packets since, to its end.
    fn move_back(&mut self, queue: usize) {
        let Some(mut entry) = self.queues.at(queue).pop_front() else {
            return;
        };
        if let Some(flow) = self.slots.get(entry.slot) {
            entry.seen_ns = flow.last_ns;
            self.queues.at(queue).push_back(entry);
        }
    }

    /// Whether no state of ended flows is left.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.index.is_empty()
            && self.paths.len() == 0
            && self.one_way.is_empty()
            && self.aliases.is_empty()
            && self.connections.is_empty()
            && self.slots.iter().next().is_none()
    }

    /// The slots of all flows, in the order in which they began.
    pub(crate) fn in_order(&self) -> Vec<Slot> {
        let mut order: Vec<_> = self.slots.iter().map(|(slot, _)| slot).collect();
        order.sort_unstable_by_key(|slot| {
            let flow = self.slots.get(*slot);
            flow.map(|flow| (flow.id, flow.part()))
        });
        order.into_iter().map(Slot).collect()
    }
}
