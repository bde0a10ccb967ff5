//! The places of flows in memory.

use super::Flow;

/// Places of a block, a power of two.
const BLOCK: usize = 1 << 10;

/// Flows by the numbers of their places, which are used again.
// In blocks, because a vector that grows is copied: for a moment it takes half as much memory again.
#[derive(Default)]
pub(super) struct Slots {
    blocks: Vec<Vec<Option<Flow>>>,
    free: Vec<u32>,
}

impl Slots {
    #[inline(always)]
    const fn place(slot: u32) -> [usize; 2] {
        let slot = slot as usize;
        [slot / BLOCK, slot % BLOCK]
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&Flow> {
        let [block, place] = Self::place(slot);
        self.blocks[block][place].as_ref()
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Flow> {
        let [block, place] = Self::place(slot);
        self.blocks[block][place].as_mut()
    }

    /// Stores a flow. Returns its slot.
    pub(super) fn insert(&mut self, flow: Flow) -> u32 {
        if let Some(slot) = self.free.pop() {
            let [block, place] = Self::place(slot);
            self.blocks[block][place] = Some(flow);
            return slot;
        }
        if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
            self.blocks.push(Vec::with_capacity(BLOCK));
        }
        let before = (self.blocks.len() - 1) * BLOCK;
        let last = &mut self.blocks[before / BLOCK];
        last.push(Some(flow));
        (before + last.len() - 1) as u32
    }

    /// Removes the flow of a slot, which another flow may get then.
    pub(super) fn remove(&mut self, slot: u32) -> Option<Flow> {
        let [block, place] = Self::place(slot);
        let flow = self.blocks[block][place].take()?;
        self.free.push(slot);
        Some(flow)
    }

    /// The occupied slots, and their flows.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Flow)> {
        let all = self.blocks.iter().flatten().zip(0..);
        all.filter_map(|(flow, slot)| Some((slot, flow.as_ref()?)))
    }
}
