//! Random streams in random order, compared with a simple model of the paper that uses linear searches.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A stream of the model.
#[derive(Clone, Debug)]
struct Stream {
    id: u64,
    parent: Option<usize>,
    weight: u16,
    /// Number of packets left.
    left: u32,
    blocked: bool,
    tokens: u32,
    next: usize,
}

/// All streams in the order in which they were added; none is removed.
#[derive(Debug)]
struct Model {
    config: WrrConfig,
    streams: Vec<Stream>,
    next: usize,
}

impl Model {
    fn has_data(&self, n: usize) -> bool {
        self.streams[n].left > 0 && !self.streams[n].blocked
    }

    fn children(&self, of: Option<usize>) -> Vec<usize> {
        let all = 0..self.streams.len();
        all.filter(|n| self.streams[*n].parent == of).collect()
    }

    fn sends(&self, n: usize) -> bool {
        let passes = !self.config.strict_parent || self.streams[n].left == 0;
        let mut children = self.children(Some(n)).into_iter();
        self.has_data(n) || passes && children.any(|child| self.sends(child))
    }

    /// Serves one packet below `of`; returns its stream.
    fn serve(&mut self, of: Option<usize>) -> Option<u64> {
        let children = self.children(of);
        let ready: Vec<_> = children
            .iter()
            .copied()
            .filter(|n| self.sends(*n))
            .collect();
        if ready.iter().all(|n| self.streams[*n].tokens == 0) {
            let heaviest = children
                .iter()
                .filter(|n| self.streams[**n].left > 0 || self.sends(**n))
                .map(|n| self.streams[*n].weight)
                .max()?;
            for n in &ready {
                let stream = &mut self.streams[*n];
                stream.tokens = self.config.tokens.of(stream.weight, heaviest);
            }
        }
        let next = of.map_or(self.next, |n| self.streams[n].next);
        let has_turn = |n: &&usize| self.streams[**n].tokens > 0;
        let after = ready.iter().filter(|n| **n >= next).find(has_turn);
        let chosen = *after.or_else(|| ready.iter().find(has_turn))?;
        self.streams[chosen].tokens -= 1;
        let is_over = self.streams[chosen].tokens == 0;
        let next = chosen + usize::from(is_over);
        match of {
            Some(n) => self.streams[n].next = next,
            None => self.next = next,
        }
        if self.has_data(chosen) {
            self.streams[chosen].left -= 1;
            return Some(self.streams[chosen].id);
        }
        self.serve(Some(chosen))
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Add {
        parent: usize,
        weight: u16,
        packets: u32,
    },
    Block(usize),
    Unblock(usize),
    Serve(u32),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12_usize, 1..=256_u16, 1..20_u32).prop_map(|(parent, weight, packets)| Step::Add {
            parent,
            weight,
            packets
        }),
        (0..12_usize).prop_map(Step::Block),
        (0..12_usize).prop_map(Step::Unblock),
        (1..12_u32).prop_map(Step::Serve),
    ]
}

fn config() -> impl Strategy<Value = WrrConfig> {
    let tokens = prop_oneof![
        Just(Tokens::Weight),
        (1..20_u16).prop_map(|most| Tokens::Scattered {
            most,
            rounding: Rounding::Nearest
        }),
    ];
    (tokens, any::<bool>()).prop_map(|(tokens, strict_parent)| WrrConfig {
        tokens,
        strict_parent,
        first_turn: FirstTurn::Wait,
    })
}

/// The model and the scheduler side by side.
struct Pair {
    model: Model,
    wrr: Wrr,
}

impl Pair {
    /// Updates the scheduler with the state of stream `n`.
    fn update(&mut self, n: usize) {
        let stream = &self.model.streams[n];
        let (id, parent) = (id(stream.id), stream.parent);
        let parent = parent.map(|n| super::id(self.model.streams[n].id));
        if self.model.has_data(n) {
            self.wrr
                .activate(id, Priority::weighted(parent, stream.weight));
        } else if stream.left == 0 {
            self.wrr.finish(id);
        } else {
            self.wrr.deactivate(id);
        }
    }

    fn serve(&mut self) -> Result<bool, TestCaseError> {
        let picked = self.wrr.pick();
        if let Some(picked) = picked {
            self.wrr.on_sent(picked, 1200);
        }
        let served = self.model.serve(None);
        prop_assert_eq!(picked.map(u64::from), served);
        if let Some(served) = served {
            self.update(served as usize);
        }
        Ok(served.is_some())
    }

    fn take(&mut self, step: Step) -> Result<(), TestCaseError> {
        let count = self.model.streams.len();
        match step {
            Step::Add {
                parent,
                weight,
                packets,
            } => {
                self.model.streams.push(Stream {
                    id: count as u64,
                    parent: Some(parent).filter(|parent| *parent < count),
                    weight,
                    left: packets,
                    blocked: false,
                    tokens: 0,
                    next: 0,
                });
                self.update(count);
            }
            Step::Block(n) | Step::Unblock(n) if n < count => {
                self.model.streams[n].blocked = matches!(step, Step::Block(_));
                self.update(n);
            }
            Step::Serve(packets) => {
                for _ in 0..packets {
                    self.serve()?;
                }
            }
            Step::Block(_) | Step::Unblock(_) => {}
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn wrr_serves_streams_as_the_model_does(
        config in config(),
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut pair = Pair {
            model: Model { config, streams: Vec::new(), next: 0 },
            wrr: Wrr::new(config),
        };
        for step in steps {
            pair.take(step)?;
        }
        // Once no stream is blocked, all data is sent.
        for n in 0..pair.model.streams.len() {
            pair.model.streams[n].blocked = false;
            pair.update(n);
        }
        while pair.serve()? {}
        prop_assert!(pair.model.streams.iter().all(|stream| stream.left == 0));
        prop_assert_eq!(pair.wrr.pick(), None);
    }

    #[test]
    fn siblings_share_by_weight(weights in proptest::collection::vec(1..=256_u16, 1..12), most in 1..40_u16) {
        let tokens = Tokens::Scattered { most, rounding: Rounding::Nearest };
        let mut wrr = Wrr::new(WrrConfig { tokens, ..WrrConfig::SCATTERED });
        for (n, weight) in weights.iter().enumerate() {
            wrr.activate(id(n as u64), top(*weight));
        }
        let heaviest = weights.iter().copied().max().unwrap_or(1);
        let shares: Vec<_> = weights.iter().map(|weight| tokens.of(*weight, heaviest)).collect();
        let round: u32 = shares.iter().sum();
        let mut served = BTreeMap::new();
        for stream in turns(&mut wrr, 3 * round as usize) {
            *served.entry(stream as usize).or_insert(0) += 1;
        }
        for (n, share) in shares.iter().enumerate() {
            prop_assert_eq!(served[&n], 3 * share);
            // A whole number is at most half a packet from the true share, and never 0.
            let exact = f64::from(weights[n]) * f64::from(most) / f64::from(heaviest);
            prop_assert!((f64::from(*share) - exact).abs() <= 0.5 || *share == 1);
        }
    }

    #[test]
    fn arbitrary_calls_cause_no_panic(
        calls in proptest::collection::vec((0..6_u8, 0..30_u64, 0..32_u64, 0..300_u16), 0..300),
        strict in any::<bool>(),
    ) {
        let mut wrr = Wrr::new(WrrConfig {
            strict_parent: strict,
            first_turn: FirstTurn::Immediate,
            ..WrrConfig::SCATTERED
        });
        let mut order = Vec::new();
        for (call, stream, parent, weight) in calls {
            match call {
                0 | 1 => wrr.activate(id(stream), below(parent, weight)),
                2 => wrr.deactivate(id(stream)),
                3 => wrr.finish(id(stream)),
                4 => wrr.set_priority(id(stream), below(parent, weight)),
                _ => wrr.on_sent(id(stream), 1),
            }
            let picked = wrr.pick();
            order.clear();
            wrr.order(100, &mut order);
            prop_assert_eq!(order.first().copied(), picked);
            if let Some(picked) = picked {
                wrr.on_sent(picked, 1);
            }
        }
        for stream in 0..30 {
            wrr.finish(id(stream));
        }
        prop_assert_eq!(wrr.pick(), None);
    }
}
