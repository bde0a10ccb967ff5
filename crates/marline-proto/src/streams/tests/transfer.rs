//! Long transfers whose applications act only on events: a missing event would stall them.

use super::wire::End;
use super::*;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// Bytes on each stream: many times the size of every window.
const LEN: u64 = 60_000;

#[derive(Default)]
struct App {
    /// Bytes written on each stream, or finished.
    written: BTreeMap<StreamId, u64>,
    read: BTreeMap<StreamId, u64>,
    finished: usize,
    read_whole: usize,
}

impl App {
    fn write(&mut self, streams: &mut Streams, id: StreamId) {
        let written = self.written.entry(id).or_default();
        while *written < LEN {
            let chunk: Vec<u8> = (*written..LEN.min(*written + 700))
                .map(|i| i as u8)
                .collect();
            match streams.write(id, &chunk) {
                Ok(len) => *written += len as u64,
                Err(error) => return assert_eq!(error, WriteError::Blocked),
            }
        }
        streams.finish(id).expect("open");
    }

    fn read(&mut self, streams: &mut Streams, id: StreamId, now: Instant) {
        let read = self.read.entry(id).or_default();
        loop {
            match streams.read(id, 333, || now) {
                Ok(Some(bytes)) => {
                    let expected: Vec<u8> = (*read..).map(|i| i as u8).take(bytes.len()).collect();
                    assert_eq!(bytes, expected);
                    *read += bytes.len() as u64;
                }
                Ok(None) => {
                    assert_eq!(*read, LEN);
                    self.read_whole += 1;
                    return;
                }
                Err(error) => return assert_eq!(error, ReadError::Blocked),
            }
        }
    }

    fn open(&mut self, streams: &mut Streams, dir: Dir) {
        while self.written.len() < 10 {
            let Some(id) = streams.open(dir) else { return };
            self.write(streams, id);
        }
    }

    fn handle_events(&mut self, streams: &mut Streams, now: Instant) {
        while let Some(event) = streams.poll_event() {
            match event {
                StreamEvent::Opened(dir) => while streams.accept(dir).is_some() {},
                StreamEvent::Readable(id) => self.read(streams, id, now),
                StreamEvent::Writable(id) => self.write(streams, id),
                StreamEvent::Finished(_) => self.finished += 1,
                StreamEvent::Available(dir) => self.open(streams, dir),
                StreamEvent::Stopped { .. } => panic!("nobody stops"),
            }
        }
    }
}

#[test]
fn a_transfer_completes_on_events_alone() {
    for seed in 0..8 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut ends = [End::new(Side::Client), End::new(Side::Server)];
        let mut apps = [App::default(), App::default()];
        for (end, app) in ends.iter_mut().zip(&mut apps) {
            end.streams.set_rtt(Duration::from_nanos(50));
            app.open(&mut end.streams, Dir::Uni);
        }
        let mut rounds = 0;
        while apps
            .iter()
            .any(|app| app.finished < 10 || app.read_whole < 10)
        {
            rounds += 1;
            assert!(rounds < 100_000, "the transfer stands still");
            ends.rotate_left(1);
            apps.rotate_left(1);
            let [end, peer] = &mut ends;
            apps[0].handle_events(&mut end.streams, Instant::from_nanos(rounds));
            end.send(300, rng.next_u32() as usize);
            let pick = rng.next_u32() as usize;
            match rng.next_u32() % 20 {
                0..3 => end.lose(pick, false, peer),
                3 => end.lose(pick, true, peer),
                4 => end.deliver(pick, true, peer),
                5..8 => {}
                _ => end.deliver(pick, false, peer),
            }
        }
        assert!(ends.iter().all(|end| end.streams.stats().bytes_held == 0));
    }
}
