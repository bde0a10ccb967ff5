//! Links in series.

use crate::{Exit, Link, Packet, Time};

#[cfg(test)]
mod tests;

/// Several links in series as one: a packet that leaves a stage enters the next at the same time.
pub struct Chain<B> {
    stages: Vec<Stage<B>>,
}

struct Stage<B> {
    link: Box<dyn Link<B>>,
    /// Next event of the link; [`Time::MAX`] for none. Cached on every change, because each `pop`
    /// compares all stages.
    due: Time,
}

impl<B> Stage<B> {
    fn new(link: Box<dyn Link<B>>) -> Self {
        let due = link.next_event().unwrap_or(Time::MAX);
        Self { link, due }
    }

    fn push(&mut self, now: Time, packet: Packet<B>) {
        self.link.push(now, packet);
        self.due = self.link.next_event().unwrap_or(Time::MAX);
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        let exit = self.link.pop(now);
        self.due = self.link.next_event().unwrap_or(Time::MAX);
        exit
    }
}

impl<B> Chain<B> {
    /// A chain in which packets pass `stages` from first to last; without stages they pass without delay.
    pub fn new(mut stages: Vec<Box<dyn Link<B>>>) -> Self
    where
        B: Send + 'static,
    {
        if stages.is_empty() {
            stages.push(Box::new(crate::Delay::new(std::time::Duration::ZERO)));
        }
        Self {
            stages: stages.into_iter().map(Stage::new).collect(),
        }
    }

    /// The stage with the earliest event, if that is due at `now`. Of several the last is processed
    /// first, so that results at one time do not depend on how often the chain is polled.
    fn next_stage(&self, now: Time) -> Option<usize> {
        let (index, stage) = self
            .stages
            .iter()
            .enumerate()
            .rev()
            .min_by_key(|(_, stage)| stage.due)?;
        (stage.due <= now && stage.due < Time::MAX).then_some(index)
    }
}

impl<B: Send> Link<B> for Chain<B> {
    fn push(&mut self, now: Time, packet: Packet<B>) {
        if let Some(first) = self.stages.first_mut() {
            first.push(now, packet);
        }
    }

    fn pop(&mut self, now: Time) -> Option<Exit<B>> {
        while let Some(index) = self.next_stage(now) {
            let at = self.stages[index].due;
            match self.stages[index].pop(at) {
                Some(exit) if exit.dropped.is_none() && index + 1 < self.stages.len() => {
                    self.stages[index + 1].push(exit.at, exit.packet);
                }
                Some(exit) => return Some(exit),
                None => debug_assert!(
                    self.stages[index].due > at,
                    "stage {index} makes no progress"
                ),
            }
        }
        None
    }

    fn next_event(&self) -> Option<Time> {
        let due = self.stages.iter().map(|stage| stage.due).min()?;
        (due < Time::MAX).then_some(due)
    }

    fn queued_bytes(&self) -> u64 {
        self.stages
            .iter()
            .map(|stage| stage.link.queued_bytes())
            .sum()
    }
}
