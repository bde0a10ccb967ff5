//! The flows that are under way, and when they end.

mod flow;
mod queue;

use std::collections::HashMap;

use ahash::RandomState;

pub use flow::ClientSource;
pub(crate) use flow::{Directed, Flow, FlowKey, Inspection, Phase};
use queue::{Entry, Queues};

use crate::limits::{DEFAULT_MAX_FLOWS, LARGEST_MAX_FLOWS};

/// When flows end, and how many there may be.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When flows end.
    pub timeouts: Timeouts,
    /// Flows at once: before one more begins, the oldest one without traffic ends.
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

/// Why a flow ended.
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

/// Where a flow is in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot(u32);

struct Occupied {
    flow: Flow,
    /// Which entry of the queues is about it; earlier ones are not.
    ticket: u32,
    /// The phase that its entry is for.
    queued: Phase,
}

/// Flows by key.
pub(crate) struct Table {
    options: Options,
    index: HashMap<FlowKey, u32, RandomState>,
    slots: Vec<Option<Occupied>>,
    free: Vec<u32>,
    queues: Queues,
    tickets: u32,
    next_id: u64,
    /// The flow of the packet before, which is often that of the next one, too.
    recent: Option<Slot>,
    /// When the next flow may have ended.
    due_ns: u64,
}

impl Table {
    pub(crate) fn new(mut options: Options) -> Self {
        options.max_flows = options.max_flows.clamp(1, LARGEST_MAX_FLOWS);
        Self {
            options,
            index: HashMap::with_hasher(RandomState::new()),
            slots: Vec::new(),
            free: Vec::new(),
            queues: Queues::default(),
            tickets: 0,
            next_id: 1,
            recent: None,
            due_ns: u64::MAX,
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

    #[inline(always)]
    pub(crate) fn find(&mut self, key: &FlowKey) -> Option<Slot> {
        if let Some(recent) = self.recent
            && self.get(recent).key() == *key
        {
            return self.recent;
        }
        let slot = *self.index.get(key)?;
        self.recent = Some(Slot(slot));
        self.recent
    }

    /// The flow in a slot that [`find`](Self::find) or [`insert`](Self::insert) returned and that was not removed since.
    #[inline]
    pub(crate) fn get(&self, slot: Slot) -> &Flow {
        let occupied = self.slots[slot.0 as usize].as_ref();
        &occupied
            .expect("the slot of a flow that is in the index is occupied")
            .flow
    }

    /// The same, to change it.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: Slot) -> &mut Flow {
        let occupied = self.slots[slot.0 as usize].as_mut();
        &mut occupied
            .expect("the slot of a flow that is in the index is occupied")
            .flow
    }

    /// The number of the next flow.
    pub(crate) fn new_id(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        id
    }

    pub(crate) fn insert(&mut self, flow: Flow) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            (self.slots.len() - 1) as u32
        });
        self.index.insert(flow.key(), slot);
        self.recent = Some(Slot(slot));
        let queued = flow.phase();
        self.slots[slot as usize] = Some(Occupied {
            flow,
            ticket: 0,
            queued,
        });
        self.enqueue(slot);
        Slot(slot)
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Flow {
        let occupied = self.slots[slot.0 as usize].take();
        let flow = occupied
            .expect("the slot of a flow that is in the index is occupied")
            .flow;
        self.index.remove(&flow.key());
        self.free.push(slot.0);
        self.recent = None;
        flow
    }

    /// The flow in `slot` may have changed its phase: with another phase, another time-out applies.
    #[inline]
    pub(crate) fn requeue_if_changed(&mut self, slot: Slot) {
        if let Some(occupied) = &self.slots[slot.0 as usize]
            && occupied.queued != occupied.flow.phase()
        {
            self.enqueue(slot.0);
        }
    }

    fn enqueue(&mut self, slot: u32) {
        let Some(occupied) = &mut self.slots[slot as usize] else {
            return;
        };
        self.tickets = self.tickets.wrapping_add(1);
        occupied.ticket = self.tickets;
        occupied.queued = occupied.flow.phase();
        let entry = Entry {
            slot,
            ticket: self.tickets,
            seen_ns: occupied.flow.last_ns,
        };
        let due_ns = entry
            .seen_ns
            .saturating_add(occupied.flow.idle_timeout_ns(&self.options.timeouts));
        self.due_ns = self.due_ns.min(due_ns);
        let key = occupied.flow.key();
        self.queues
            .of(occupied.queued, key.transport())
            .push_back(entry);
    }

    /// A flow that has been idle for too long at `now_ns`, if there is one.
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
                let Some(occupied) = &self.slots[entry.slot as usize] else {
                    break;
                };
                let timeout = occupied.flow.idle_timeout_ns(&self.options.timeouts);
                let last = occupied.flow.last_ns;
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

    /// The flow to end where there must be room for another: one that is closed or opening, else any, the one whose last
    /// packet is the oldest (by the clock algorithm).
    pub(crate) fn oldest(&mut self) -> Option<Slot> {
        let mut oldest: Option<Entry> = None;
        for queue in 0..Queues::COUNT {
            while let Some(entry) = self.current_front(queue) {
                let occupied = self.slots[entry.slot as usize].as_ref();
                if occupied.is_some_and(|occupied| occupied.flow.last_ns != entry.seen_ns) {
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

    /// The first entry of a queue that is still about a flow.
    fn current_front(&mut self, queue: usize) -> Option<Entry> {
        loop {
            let entry = *self.queues.at(queue).front()?;
            let occupied = self.slots[entry.slot as usize].as_ref();
            if occupied.is_some_and(|occupied| occupied.ticket == entry.ticket) {
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
        if let Some(occupied) = &self.slots[entry.slot as usize] {
            entry.seen_ns = occupied.flow.last_ns;
            self.queues.at(queue).push_back(entry);
        }
    }

    /// All flows, in the order in which they began.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Flow> + use<> {
        self.index.clear();
        self.free.clear();
        self.queues = Queues::default();
        self.recent = None;
        self.due_ns = u64::MAX;
        let mut slots = std::mem::take(&mut self.slots);
        let begun = |(slot, occupied): (usize, &Option<Occupied>)| {
            let flow = &occupied.as_ref()?.flow;
            Some((flow.id, flow.part, slot))
        };
        let mut order: Vec<_> = slots.iter().enumerate().filter_map(begun).collect();
        order.sort_unstable();
        let slots_in_order = order.into_iter().map(|(_, _, slot)| slot);
        slots_in_order.filter_map(move |slot| slots[slot].take().map(|occupied| occupied.flow))
    }
}
