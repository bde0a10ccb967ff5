//! Paths of a connection are opened and abandoned, links fail and recover, and a peer with valid keys sends
//! arbitrary frames about them, in virtual time. Checks for panics and progress; correct peers receive all data.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::{arbitrary, fuzz_target};
use marline_proto::scheduling::path::{PathStatus, SCHEDULERS};
use marline_proto::testing::{Conditions, Ends, Pair, PairConfig};
use marline_proto::{
    Connection, ConnectionError, Dir, ErrorCode, FourTuple, MultipathConfig, PathId, StreamId,
    TransportConfig, WriteError,
};

/// A multiple of the events of an input.
const MAX_STEPS: u32 = 200_000;
/// Maximum number of actions of an input.
const MAX_TURNS: usize = 40;
/// Size in bytes of the data that each end sends.
const DATA: usize = 60_000;
/// Time limit for the data once all links work again; longer than the idle timeout.
const TIMEOUT: Duration = Duration::from_secs(200);

/// An action.
#[derive(arbitrary::Arbitrary, Debug)]
enum Turn {
    Open {
        link: u8,
    },
    Abandon {
        server: bool,
        path: u8,
    },
    Status {
        server: bool,
        path: u8,
        backup: bool,
    },
    /// Replaces the properties of a link, or disables it.
    Link {
        link: u8,
        delay: u8,
        loss: u8,
        down: bool,
    },
    Rebind {
        port: u16,
    },
    UpdateKeys {
        server: bool,
    },
    /// An end sends arbitrary frames.
    Say {
        server: bool,
        path: u8,
        frames: Vec<u8>,
    },
    /// An end sends one multipath frame with plausible values.
    Frame {
        server: bool,
        path: u8,
        kind: u8,
        values: [u8; 6],
    },
    Pass {
        millis: u8,
    },
}

fuzz_target!(|input: (u8, u8, Vec<Turn>)| {
    let (seed, scheduler, turns) = input;
    let mut world = World::new(seed.into(), scheduler);
    for turn in turns.iter().take(MAX_TURNS) {
        world.turn(turn);
        if world.is_over() {
            break;
        }
    }
    world.settle();
});

struct World {
    pair: Pair,
    ends: Ends,
    streams: [Sending; 2],
    /// Whether both ends have complied with the protocol so far.
    honest: bool,
    steps: u32,
}

/// The data that one end sends.
struct Sending {
    by_server: bool,
    stream: StreamId,
    sent: usize,
    received: usize,
}

impl World {
    fn new(seed: u64, scheduler: u8) -> Self {
        let mut schedulers = SCHEDULERS.defaults();
        let place = usize::from(scheduler) % schedulers.len();
        let scheduler = schedulers.swap_remove(place).value;
        let transport = || TransportConfig {
            multipath: Some(MultipathConfig {
                scheduler: scheduler.clone(),
                ..MultipathConfig::default()
            }),
            max_idle_timeout: Some(TIMEOUT / 2),
            ..TransportConfig::default()
        };
        let mut pair = Pair::with(PairConfig {
            client: transport(),
            server: transport(),
            seed,
            ..PairConfig::default()
        });
        let ends = pair.establish();
        pair.drive(Duration::from_millis(50));
        let sending = |by_server, connection: &mut Connection| Sending {
            by_server,
            stream: connection.open(Dir::Uni).expect("streams are allowed"),
            sent: 0,
            received: 0,
        };
        let streams = [
            sending(false, pair.client(ends.client)),
            sending(true, pair.server(ends.server)),
        ];
        let mut world = Self {
            pair,
            ends,
            streams,
            honest: true,
            steps: 0,
        };
        world.heal();
        world
    }

    fn end(&mut self, server: bool) -> Option<&mut Connection> {
        match server {
            true => self.pair.server.connections.get_mut(&self.ends.server),
            false => self.pair.client.connections.get_mut(&self.ends.client),
        }
    }

    fn is_over(&mut self) -> bool {
        [false, true]
            .into_iter()
            .any(|server| self.end(server).is_none_or(|end| end.is_closed()))
    }

    fn turn(&mut self, turn: &Turn) {
        let now = self.pair.now;
        match *turn {
            Turn::Open { link } => {
                let remote = self.pair.server.address;
                let local = self.address(link);
                if let Some(client) = self.end(false) {
                    // The limit may be reached.
                    let _ = client.open_path(now, FourTuple { local, remote });
                }
            }
            Turn::Abandon { server, path } => {
                if let Some((end, path)) = self.path(server, path) {
                    // It may be the last path.
                    let _ = end.abandon_path(now, path, ErrorCode::APPLICATION_ABANDON_PATH);
                }
            }
            Turn::Status {
                server,
                path,
                backup,
            } => {
                if let Some((end, path)) = self.path(server, path) {
                    let status = if backup {
                        PathStatus::Backup
                    } else {
                        PathStatus::Available
                    };
                    end.set_path_status(path, status);
                }
            }
            Turn::Link {
                link,
                delay,
                loss,
                down,
            } => self.link(
                link,
                Conditions {
                    delay: Duration::from_millis(delay.into()),
                    loss: f64::from(loss) / 1024.0,
                    down,
                    ..Conditions::default()
                },
            ),
            Turn::Rebind { port } => {
                self.honest = false;
                let port = port.max(1024);
                self.pair
                    .rebind_nat(SocketAddr::from(([203, 0, 113, 1], port)));
            }
            Turn::UpdateKeys { server } => {
                if let Some(end) = self.end(server) {
                    end.initiate_key_update(now);
                }
            }
            Turn::Say {
                server,
                path,
                ref frames,
            } => {
                self.say(server, path, &frames[..frames.len().min(1000)]);
            }
            Turn::Frame {
                server,
                path,
                kind,
                values,
            } => {
                self.say(server, path, &frame(kind, values));
            }
            Turn::Pass { millis } => {
                self.pass(Duration::from_millis(millis.into()) * 2);
            }
        }
        self.pair.flush();
    }

    /// Delivers a packet of this end to the other immediately.
    fn say(&mut self, server: bool, path: u8, frames: &[u8]) {
        self.honest = false;
        let now = self.pair.now;
        let Some(end) = self.end(server) else { return };
        let Some(mut datagram) = end.craft_frames(now, path.into(), frames) else {
            return;
        };
        let Some(victim) = self.end(!server) else {
            return;
        };
        let tuple = FourTuple {
            local: victim.local_address(),
            remote: victim.remote_address(),
        };
        victim.handle_datagram(now, tuple, None, &mut datagram);
    }

    fn pass(&mut self, time: Duration) -> bool {
        let until = self.pair.now + time;
        loop {
            if self.advance() {
                return true;
            }
            if !self.pair.step(until) {
                return self.advance();
            }
            self.steps += 1;
            assert!(self.steps < MAX_STEPS, "no progress");
        }
    }

    /// Whether all data has arrived, or the connection is closed.
    fn advance(&mut self) -> bool {
        if self.is_over() {
            return true;
        }
        let now = self.pair.now;
        let pair = &mut self.pair;
        for sending in &mut self.streams {
            let ends = self.ends;
            let stream = sending.stream;
            let other = if sending.by_server {
                pair.client(ends.client)
            } else {
                pair.server(ends.server)
            };
            while let Ok(Some(bytes)) = other.read(|| now, stream, usize::MAX) {
                sending.received += bytes.len();
            }
            let own = if sending.by_server {
                pair.server(ends.server)
            } else {
                pair.client(ends.client)
            };
            while sending.sent < DATA {
                match own.write(stream, &[5; 1000]) {
                    Ok(written) => sending.sent += written,
                    Err(WriteError::Blocked) => break,
                    // A peer that violates the protocol may prevent it.
                    Err(_) => return false,
                }
            }
        }
        self.streams.iter().all(|sending| sending.received >= DATA)
    }

    /// Restores all links; correct peers complete their transfers.
    fn settle(&mut self) {
        if !self.honest {
            self.pass(Duration::from_secs(3));
            return;
        }
        self.heal();
        let done = self.pass(TIMEOUT);
        assert!(done, "stalled");
        for server in [false, true] {
            if let Some(error) = self.end(server).and_then(|end| end.error().cloned()) {
                // Both ends may abandon different paths at once, until no path is left.
                let code = match &error {
                    ConnectionError::Transport(error) => Some(error.code),
                    ConnectionError::PeerTransport { code, .. } => Some(*code),
                    _ => None,
                };
                assert_eq!(code, Some(ErrorCode::NO_VIABLE_PATH), "{error}");
            }
        }
    }

    fn heal(&mut self) {
        for link in 0..LINKS {
            self.link(
                link,
                Conditions {
                    delay: Duration::from_millis(5),
                    ..Conditions::default()
                },
            );
        }
    }

    fn link(&mut self, link: u8, conditions: Conditions) {
        match link % LINKS {
            0 => self.pair.network.set(conditions),
            link => {
                let at = self.address(link);
                self.pair.network.set_link(at, conditions);
            }
        }
    }

    /// The client's address on a link.
    fn address(&self, link: u8) -> SocketAddr {
        match link % LINKS {
            0 => self.pair.client.address,
            link => SocketAddr::from(([198, 51, 100, link], 40_000)),
        }
    }

    fn path(&mut self, server: bool, nth: u8) -> Option<(&mut Connection, PathId)> {
        let end = self.end(server)?;
        let paths = end.stats().paths;
        let path = paths.get(usize::from(nth) % paths.len().max(1))?;
        let id = path.id;
        Some((end, id))
    }
}

/// Links of the client, each with an address.
const LINKS: u8 = 4;

/// A frame of draft-ietf-quic-multipath-21, section 4.
fn frame(kind: u8, values: [u8; 6]) -> Vec<u8> {
    const TYPES: [u16; 10] = [
        0x3e, 0x3f, 0x3e75, 0x3e76, 0x3e77, 0x3e78, 0x3e79, 0x3e7a, 0x3e7b, 0x3e7c,
    ];
    let kind = TYPES[usize::from(kind) % TYPES.len()];
    // Numbers below 64 are a byte each.
    let [path, a, b, c, d, e] = values.map(|value| value & 0x3f);
    let mut frame = match u8::try_from(kind) {
        Ok(kind) => vec![kind],
        Err(_) => (0x4000 | kind).to_be_bytes().to_vec(),
    };
    match kind {
        // Largest acknowledged, delay, no further ranges, first range, and ECN counts.
        0x3e => frame.extend([path, a, b, 0, c]),
        0x3f => frame.extend([path, a, b, 0, c, d, e, e]),
        // Sequence number, Retire Prior To, connection ID and stateless reset token.
        0x3e78 => {
            frame.extend([path, a, b, 4]);
            frame.extend([c; 4 + 16]);
        }
        0x3e7a | 0x3e7b => frame.push(path),
        _ => frame.extend([path, a]),
    }
    frame
}
