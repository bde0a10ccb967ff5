//! Datagrams whose path the application chooses.

use super::*;
use crate::datagrams::{DatagramError, DatagramPath};

/// Bytes of a datagram.
const SIZE: usize = 1000;

/// A sender with more datagrams than two paths carry, and what has arrived of each.
struct Sender {
    several: Several,
    /// The number of the next datagram.
    next: u32,
    arrived: Vec<u32>,
}

impl Sender {
    /// Two paths of 1 MB/s and of this rate.
    fn new(rate: u64) -> Self {
        let mut several = Several::two(narrow());
        let other = Conditions {
            rate: Some(rate),
            ..narrow()
        };
        several.pair.network.set_link(address(1), other);
        Self {
            several,
            next: 0,
            arrived: Vec::new(),
        }
    }

    fn paths(&mut self) -> Vec<DatagramPath> {
        let now = self.several.pair.now;
        self.several.server().datagram_paths(now).collect()
    }

    /// Sends for `time`: as many datagrams on each of `paths` as it takes.
    fn run(&mut self, paths: &[PathId], time: Duration) {
        let Self {
            several,
            next,
            arrived,
        } = self;
        let ends = several.ends;
        several.pair.drive_until(time, |pair| {
            let now = pair.now;
            let server = pair.server(ends.server);
            for path in paths {
                while server.send_datagram_on(now, *path, datagram(*next)).is_ok() {
                    *next += 1;
                }
            }
            let client = pair.client(ends.client);
            while let Some(data) = client.recv_datagram() {
                let number = data.first_chunk().expect("it has a number");
                arrived.push(u32::from_be_bytes(*number));
            }
            false
        });
    }

    /// Bytes of datagrams that arrive in `time`.
    fn measure(&mut self, paths: &[PathId], time: Duration) -> usize {
        let before = self.arrived.len();
        self.run(paths, time);
        (self.arrived.len() - before) * SIZE
    }
}

fn datagram(number: u32) -> Bytes {
    let mut data = number.to_be_bytes().to_vec();
    data.resize(SIZE, 0);
    data.into()
}

const BOTH: [PathId; 2] = [PathId::INITIAL, ONE];

#[test]
fn datagrams_on_two_paths_fill_both() {
    for rate in [250_000, 1_000_000, 3_000_000] {
        let mut sender = Sender::new(rate);
        sender.run(&BOTH, Duration::from_secs(2));
        let bytes = sender.measure(&BOTH, Duration::from_secs(4));
        let sum = 4 * (1_000_000 + rate) as usize;
        assert!(bytes > sum * 85 / 100, "{bytes} of {sum} bytes");
        // Most of what waits is the application's.
        for path in sender.paths() {
            assert!(path.queued < 20_000, "{path:?}");
        }
    }
}

#[test]
fn a_datagram_is_sent_on_the_path_that_was_chosen() {
    let mut sender = Sender::new(1_000_000);
    for path in BOTH {
        let before = BOTH.map(|path| sender.several.sent(Side::Server, path));
        let bytes = sender.measure(&[path], Duration::from_millis(500));
        let after = BOTH.map(|path| sender.several.sent(Side::Server, path));
        let carried = [after[0] - before[0], after[1] - before[1]];
        assert!(bytes > 100_000);
        assert!(carried[path.0 as usize] as usize > bytes);
        assert!(carried[1 - path.0 as usize] < 10_000, "{carried:?}");
    }
    let now = sender.several.pair.now;
    let nowhere = PathId(7);
    let refused = sender
        .several
        .server()
        .send_datagram_on(now, nowhere, datagram(0));
    assert_eq!(refused, Err(DatagramError::NoPath));
}

#[test]
fn the_path_of_datagrams_fails_and_another_carries_what_was_in_flight() {
    for dead in BOTH {
        let mut sender = Sender::new(1_000_000);
        sender.run(&[dead], Duration::from_secs(1));
        match dead {
            PathId::INITIAL => sender.several.pair.network.set(DEAD),
            _ => sender.several.pair.network.set_link(address(1), DEAD),
        }
        let begun = sender.next;
        let died_at = sender.several.pair.now;
        let allowed = Duration::from_millis(150);
        // Until it is suspected.
        while sender.paths().iter().any(|path| path.view.id == dead) {
            sender.run(&[dead], Duration::from_millis(5));
            assert!(sender.several.pair.now < died_at + allowed);
        }
        let refused = (sender.several.pair.now, dead, datagram(0));
        let refused = sender
            .several
            .server()
            .send_datagram_on(refused.0, refused.1, refused.2);
        assert_eq!(refused, Err(DatagramError::NoPath));
        sender.run(&[], Duration::from_millis(400));
        let mut arrived = sender.arrived.clone();
        arrived.sort_unstable();
        let in_all = arrived.len();
        arrived.dedup();
        let missing = sender.next as usize - arrived.len();
        assert!(sender.next > begun, "nothing was in flight");
        // Those that overflowed the queue of the network in slow start were lost before.
        let lost = sender.several.server().stats().packets_lost() as usize;
        assert!(missing <= lost, "{missing} missing, {lost} lost");
        assert!(in_all - arrived.len() < 200, "{in_all}");
    }
}

#[test]
fn an_abandoned_path_leaves_its_datagrams_to_another() {
    let mut sender = Sender::new(1_000_000);
    let now = sender.several.pair.now;
    let server = sender.several.server();
    for number in 0..3 {
        assert_eq!(server.send_datagram_on(now, ONE, datagram(number)), Ok(()));
    }
    let error = ErrorCode::APPLICATION_ABANDON_PATH;
    assert_eq!(server.abandon_path(now, ONE, error), Ok(()));
    sender.next = 3;
    sender.run(&[], Duration::from_millis(100));
    assert_eq!(sender.arrived, [0, 1, 2]);
}
