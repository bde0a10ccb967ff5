//! A connection one end of which seals arbitrary frames with its real keys.

use std::time::Duration;

use super::{Script, Step};
use crate::config::TransportConfig;
use crate::connection::{Connection, ConnectionError, Held};
use crate::endpoint::ConnectionHandle;
use crate::level::SpaceId;
use crate::limits::{MAX_ACKS_UNANSWERED, MAX_RECEIVED_RANGES, MAX_UNDECRYPTABLE_PACKETS};
use crate::testing::{Direction, Pair, PairConfig};
use marline_wire::{Dir, ErrorCode, Side};

/// Limit on events, a multiple of those of an input.
const MAX_STEPS: u32 = 50_000;

/// Maximum number of steps of an input.
const MAX_ACTIONS: usize = 64;

/// Maximum number of bytes that the application of the honest end writes.
const MAX_WRITTEN: u64 = MAX_ACTIONS as u64 * 0xff;

/// The receive window of the connection, in bytes.
const WINDOW: u64 = 20_000;

/// Streams of each kind that a peer may open.
const STREAMS: u64 = 8;

/// Checks arbitrary frames in packets that one end of a connection has sealed: in 1-RTT, 0-RTT, Handshake and Initial
/// packets, during and after the handshake. The other end keeps its limits and does not fail by itself, virtual time
/// advances, a closed connection is removed, and a client connects again with any tokens and tickets that it received.
///
/// The first byte of the input selects the hostile end, resumption, and the progress of the handshake; a [`Script`]
/// follows.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_connection(input: &[u8]) {
    let Some((&options, script)) = input.split_first() else {
        return;
    };
    let mut attack = Attack::begin(options);
    for step in Script::new(script).take(MAX_ACTIONS) {
        attack.take(&step);
        attack.check();
    }
    attack.end();
}

struct Attack {
    pair: Pair,
    client: ConnectionHandle,
    /// Hostile end.
    hostile: Side,
    steps: u32,
}

impl Attack {
    /// The lowest bit selects the hostile end, the next one resumption; the others are milliseconds since the first
    /// packet.
    fn begin(options: u8) -> Self {
        let transport = || TransportConfig {
            receive_window: Some(WINDOW),
            stream_receive_window: Some(WINDOW / 2),
            max_receive_window: WINDOW,
            max_stream_receive_window: WINDOW / 2,
            max_concurrent_bidi_streams: STREAMS,
            max_concurrent_uni_streams: STREAMS,
            ..TransportConfig::default()
        };
        let mut pair = Pair::with(PairConfig {
            client: transport(),
            server: transport(),
            zero_rtt: true,
            ..PairConfig::default()
        });
        if options & 2 != 0 {
            let earlier = pair.establish();
            pair.drive(Duration::from_millis(50));
            let now = pair.now;
            pair.client(earlier.client).close(now, 0, b"");
            pair.drive(Duration::from_secs(10));
        }
        let client = pair.connect();
        pair.drive(Duration::from_millis(u64::from(options >> 2)));
        Self {
            pair,
            client,
            hostile: if options & 1 == 0 {
                Side::Client
            } else {
                Side::Server
            },
            steps: 0,
        }
    }

    fn end(mut self) {
        for side in [Side::Client, Side::Server] {
            let now = self.pair.now;
            if let Some(end) = self.connection(side) {
                end.close(now, 0, b"");
            }
        }
        self.pass(Duration::from_secs(60));
        assert!(self.pair.client.connections.is_empty(), "not forgotten");
        assert!(self.pair.server.connections.is_empty(), "not forgotten");
        // Tokens and tickets of a server must not prevent a client from connecting.
        if self.hostile == Side::Server {
            self.pair.establish();
        }
    }

    /// An end of the connection; `None` before the server has accepted it, and once it is drained.
    fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        match side {
            Side::Client => self.pair.client.connections.get_mut(&self.client),
            Side::Server => {
                let handle = self.pair.server.accepted.front()?;
                self.pair.server.connections.get_mut(handle)
            }
        }
    }

    fn honest(&mut self) -> Option<&mut Connection> {
        self.connection(self.hostile.peer())
    }

    fn take(&mut self, step: &Step<'_>) {
        match step.action % 12 {
            0..=4 => self.send(SpaceId::Data, step.bytes),
            5 => self.send(SpaceId::Initial, step.bytes),
            6 => self.send(SpaceId::Handshake, step.bytes),
            7 => self.pass(Duration::from_millis(step.number.into())),
            8 => self.write(step),
            9 => self.read(),
            10 => self.change(step.number),
            _ => {
                let now = self.pair.now;
                if let Some(end) = self.connection(self.hostile) {
                    end.initiate_key_update(now);
                }
            }
        }
        self.pair.flush();
    }

    /// Delivers a packet of the hostile end immediately.
    fn send(&mut self, space: SpaceId, frames: &[u8]) {
        let now = self.pair.now;
        let crafted = self
            .connection(self.hostile)
            .and_then(|end| end.craft_in(now, space, frames));
        let Some(datagram) = crafted else { return };
        let direction = match self.hostile {
            Side::Client => Direction::ToServer,
            Side::Server => Direction::ToClient,
        };
        self.pair.deliver(direction, datagram);
    }

    /// Opens a stream at the honest end and writes into it.
    fn write(&mut self, step: &Step<'_>) {
        let dir = if step.number & 1 == 0 {
            Dir::Bi
        } else {
            Dir::Uni
        };
        let Some(end) = self.honest() else { return };
        // Streams may be used up, and the connection closed.
        let Some(stream) = end.open(dir) else { return };
        let _ = end.write(stream, step.bytes);
        match step.number & 6 {
            2 => drop(end.finish(stream)),
            4 => drop(end.reset(stream, 7)),
            6 => drop(end.stop(stream, 7)),
            _ => {}
        }
    }

    /// Reads the received data at the honest end.
    fn read(&mut self) {
        let now = self.pair.now;
        let Some(end) = self.honest() else { return };
        for dir in [Dir::Bi, Dir::Uni] {
            while let Some(stream) = end.accept(dir) {
                while let Ok(Some(_)) = end.read(|| now, stream, usize::MAX) {}
            }
        }
        while end.recv_datagram().is_some() {}
    }

    fn change(&mut self, number: u8) {
        let now = self.pair.now;
        let Some(end) = self.honest() else { return };
        match number & 3 {
            0 => end.ping(),
            1 => drop(end.initiate_key_update(now)),
            2 => drop(end.send_datagram(vec![5; 100].into())),
            _ => end.close(now, 0, b""),
        }
    }

    fn pass(&mut self, time: Duration) {
        let until = self.pair.now + time;
        while self.pair.step(until) {
            self.steps += 1;
            assert!(self.steps < MAX_STEPS, "no progress");
        }
    }

    /// Checks that the honest end holds no more than it has permitted, and does not fail for
    /// reasons of its own.
    fn check(&mut self) {
        let Some(end) = self.honest() else { return };
        let held = end.held();
        let Held {
            unread,
            unacked,
            sent_packets,
            received_ranges,
            deferred,
            streams,
        } = held;
        assert!(unread as u64 <= WINDOW, "{held:?}");
        assert!(unacked <= MAX_WRITTEN, "{held:?}");
        assert!(sent_packets as u64 <= MAX_ACKS_UNANSWERED + 500, "{held:?}");
        assert!(received_ranges <= 3 * MAX_RECEIVED_RANGES, "{held:?}");
        assert!(deferred <= MAX_UNDECRYPTABLE_PACKETS, "{held:?}");
        // Each end may open as many of each kind.
        assert!(streams as u64 <= 4 * STREAMS, "{held:?}");
        if let Some(ConnectionError::Transport(error)) = end.error() {
            assert_ne!(error.code, ErrorCode::INTERNAL_ERROR, "{error}");
        }
    }
}
