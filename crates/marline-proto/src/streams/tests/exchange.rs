//! Two ends on a lossy link: the bytes read are the bytes written.

use super::wire::End;
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The state of one stream at one application.
#[derive(Default)]
struct Note {
    written: u64,
    read: u64,
    /// The application finished, reset or was stopped.
    writing_over: bool,
    /// The application reset or was stopped: the reader may miss the rest.
    broken: bool,
    /// The application read to the end, or stopped.
    reading_over: bool,
    read_whole: bool,
}

struct World {
    ends: [End; 2],
    notes: [BTreeMap<StreamId, Note>; 2],
    time: u64,
}

#[derive(Clone, Debug)]
enum Op {
    Open(Dir),
    Write(usize, usize),
    Finish(usize),
    Reset(usize),
    Stop(usize),
    Read(usize, usize),
    Send(usize, usize),
    Queue(usize),
    AbandonQueue,
    Copy(usize),
    Deliver(usize, bool),
    Lose(usize, bool),
}

fn op() -> impl Strategy<Value = Op> {
    let any_dir = prop_oneof![Just(Dir::Bi), Just(Dir::Uni)];
    let pick = 0usize..16;
    prop_oneof![
        3 => any_dir.prop_map(Op::Open),
        8 => (pick.clone(), 1usize..900).prop_map(|(i, n)| Op::Write(i, n)),
        2 => pick.clone().prop_map(Op::Finish),
        1 => pick.clone().prop_map(Op::Reset),
        1 => pick.clone().prop_map(Op::Stop),
        8 => (pick.clone(), 1usize..900).prop_map(|(i, n)| Op::Read(i, n)),
        12 => (pick, 30usize..700).prop_map(|(i, n)| Op::Send(n, i)),
        3 => (30usize..400).prop_map(Op::Queue),
        1 => Just(Op::AbandonQueue),
        3 => any::<usize>().prop_map(Op::Copy),
        10 => (any::<usize>(), prop::bool::weighted(0.1)).prop_map(|(i, d)| Op::Deliver(i, d)),
        4 => (any::<usize>(), prop::bool::weighted(0.3)).prop_map(|(i, s)| Op::Lose(i, s)),
    ]
}

/// The byte at `offset` that `side` writes on `id`.
fn byte(side: usize, id: StreamId, offset: u64) -> u8 {
    let seed = offset ^ (u64::from(id) << 20) ^ ((side as u64) << 40);
    (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8
}

impl World {
    fn new() -> Self {
        Self {
            ends: [End::new(Side::Client), End::new(Side::Server)],
            notes: Default::default(),
            time: 0,
        }
    }

    fn now(&mut self) -> Instant {
        self.time += 1;
        Instant::from_nanos(self.time)
    }

    fn pick(&self, side: usize, index: usize) -> Option<StreamId> {
        let notes = &self.notes[side];
        notes.keys().nth(index % notes.len().max(1)).copied()
    }

    fn apply(&mut self, side: usize, op: &Op) {
        match *op {
            Op::Open(dir) => {
                if let Some(id) = self.ends[side].streams.open(dir) {
                    self.notes[side].insert(id, Note::default());
                }
            }
            Op::Write(index, len) => self.with(side, index, |world, id| world.write(side, id, len)),
            Op::Finish(index) => self.with(side, index, |world, id| {
                if world.ends[side].streams.finish(id).is_ok() {
                    world.note(side, id).writing_over = true;
                }
            }),
            Op::Reset(index) => self.with(side, index, |world, id| {
                if world.ends[side].streams.reset(id, 1).is_ok() {
                    world.note(side, id).writing_over = true;
                    world.note(side, id).broken = true;
                }
            }),
            Op::Stop(index) => self.with(side, index, |world, id| {
                if world.ends[side].streams.stop(id, 2).is_ok() {
                    world.note(side, id).reading_over = true;
                }
            }),
            Op::Read(index, max) => self.with(side, index, |world, id| {
                world.read(side, id, max);
            }),
            Op::Send(size, pick) => {
                self.ends[side].send(size, pick);
            }
            Op::Copy(index) => {
                self.ends[side].copy(index);
            }
            Op::Queue(room) => self.ends[side].queue(room),
            Op::AbandonQueue => self.ends[side].abandon_queue(),
            Op::Deliver(index, again) => {
                let [from, to] = self.both(side);
                from.deliver(index, again, to);
            }
            Op::Lose(index, spurious) => {
                let [from, to] = self.both(side);
                from.lose(index, spurious, to);
            }
        }
        for side in 0..2 {
            self.handle_events(side);
            let streams = &self.ends[side].streams;
            assert!(streams.stats().bytes_held <= streams.config.send_buffer_limit);
            let held = streams
                .table
                .keys()
                .map(|&id| streams.out_of_order_bytes_of(id));
            assert_eq!(streams.out_of_order_bytes(), held.sum());
            assert!(streams.stats().out_of_order.max <= streams.window.size());
        }
    }

    fn with(&mut self, side: usize, index: usize, act: impl FnOnce(&mut Self, StreamId)) {
        if let Some(id) = self.pick(side, index) {
            act(self, id);
        }
    }

    fn note(&mut self, side: usize, id: StreamId) -> &mut Note {
        self.notes[side].get_mut(&id).expect("a known stream")
    }

    /// Both ends, `from` first.
    fn both(&mut self, from: usize) -> [&mut End; 2] {
        let [client, server] = &mut self.ends;
        if from == 0 {
            [client, server]
        } else {
            [server, client]
        }
    }

    fn handle_events(&mut self, side: usize) {
        while let Some(event) = self.ends[side].streams.poll_event() {
            match event {
                StreamEvent::Opened(dir) => {
                    while let Some(id) = self.ends[side].streams.accept(dir) {
                        self.notes[side].insert(id, Note::default());
                    }
                }
                StreamEvent::Stopped { id, .. } => {
                    self.note(side, id).writing_over = true;
                    self.note(side, id).broken = true;
                }
                _ => {}
            }
        }
    }

    fn write(&mut self, side: usize, id: StreamId, len: usize) {
        let offset = self.note(side, id).written;
        let bytes: Vec<u8> = (offset..offset + len as u64)
            .map(|at| byte(side, id, at))
            .collect();
        let streams = &mut self.ends[side].streams;
        let written = if len.is_multiple_of(2) {
            streams.write(id, &bytes)
        } else {
            streams.write_chunk(id, &mut bytes.into())
        };
        self.note(side, id).written += written.unwrap_or(0) as u64;
    }

    /// Reads once; returns whether that changed anything.
    fn read(&mut self, side: usize, id: StreamId, max: usize) -> bool {
        let now = self.now();
        let result = self.ends[side].streams.read(id, max, || now);
        let note = self.note(side, id);
        match result {
            Ok(Some(bytes)) => {
                assert!(!bytes.is_empty() && bytes.len() <= max);
                for &read in &bytes {
                    assert_eq!(read, byte(1 - side, id, note.read));
                    note.read += 1;
                }
                true
            }
            Ok(None) => {
                note.reading_over = true;
                note.read_whole = true;
                true
            }
            Err(ReadError::Reset(_)) => {
                note.reading_over = true;
                true
            }
            Err(ReadError::Blocked | ReadError::Closed) => false,
        }
    }

    /// Runs without further loss until all streams end.
    fn settle(&mut self) {
        loop {
            let mut busy = false;
            for side in 0..2 {
                self.handle_events(side);
                let ids: Vec<StreamId> = self.notes[side].keys().copied().collect();
                for id in ids {
                    if self.ends[side].streams.finish(id).is_ok() {
                        self.note(side, id).writing_over = true;
                    }
                    while self.read(side, id, 500) {}
                }
                busy |= self.ends[side].send(500, side);
                while !self.ends[side].in_flight.is_empty() {
                    busy = true;
                    let [from, to] = self.both(side);
                    from.deliver(0, false, to);
                }
            }
            if !busy {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn bytes_read_are_the_bytes_written_on_a_lossy_link(
        ops in prop::collection::vec((0usize..2, op()), 0..250),
    ) {
        let mut world = World::new();
        world.ends.iter_mut().for_each(|end| {
            end.streams.set_rtt(Duration::from_nanos(20));
        });
        for (side, op) in &ops {
            world.apply(*side, op);
        }
        world.settle();
        for side in 0..2 {
            prop_assert!(world.ends[side].streams.is_idle(), "{:?}", world.ends[side].streams);
            prop_assert_eq!(world.ends[side].streams.stats().bytes_held, 0);
            for (id, note) in &world.notes[side] {
                let Some(peer) = world.notes[1 - side].get(id) else {
                    prop_assert!(false, "{:?} never reached the peer", id);
                    continue;
                };
                prop_assert!(note.read <= peer.written);
                if note.read_whole {
                    prop_assert!(!peer.broken || note.read == peer.written);
                    prop_assert_eq!(note.read, peer.written);
                }
                let receives = id.dir() == Dir::Bi || (id.initiator() as usize) != side;
                if receives && !note.reading_over {
                    prop_assert!(peer.broken);
                }
            }
        }
    }
}
