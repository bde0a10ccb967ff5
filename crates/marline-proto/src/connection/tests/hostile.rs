//! A peer with valid keys that violates the protocol: the connection ends with the error code of the RFC, or
//! the consequences stay within limits.

mod acks;
mod frames;
mod handshake;
mod ids;
mod networks;
mod resources;

use super::craft::{forge_retry, varints};
use super::*;
use marline_wire::ErrorCode;

/// An established connection, one end of which violates the protocol.
struct Attack {
    pair: Pair,
    ends: Ends,
    attacker: Side,
}

/// The packets that an end would have sent.
struct Sent {
    datagrams: usize,
    bytes: usize,
}

impl Attack {
    /// An established connection whose end `attacker` violates the protocol.
    fn by(attacker: Side) -> Self {
        Self::with(attacker, PairConfig::default())
    }

    fn with(attacker: Side, config: PairConfig) -> Self {
        let mut pair = Pair::with(config);
        let ends = pair.establish();
        pair.drive(Duration::from_millis(200));
        Self {
            pair,
            ends,
            attacker,
        }
    }

    fn attacker(&mut self) -> &mut Connection {
        match self.attacker {
            Side::Client => self.pair.client(self.ends.client),
            Side::Server => self.pair.server(self.ends.server),
        }
    }

    fn victim(&mut self) -> &mut Connection {
        match self.attacker {
            Side::Client => self.pair.server(self.ends.server),
            Side::Server => self.pair.client(self.ends.client),
        }
    }

    /// Delivers a datagram to the victim immediately.
    fn deliver(&mut self, mut datagram: Vec<u8>) {
        let now = self.pair.now;
        let victim = self.victim();
        let tuple = FourTuple {
            local: victim.local_address(),
            remote: victim.remote_address(),
        };
        victim.handle_datagram(now, tuple, None, &mut datagram);
    }

    /// Delivers a 1-RTT packet with `frames` to the victim immediately.
    fn send(&mut self, frames: &[u8]) {
        let now = self.pair.now;
        let datagram = self.attacker().craft(now, SpaceId::Data, frames);
        self.deliver(datagram);
    }

    /// Discards the victim's pending packets and events.
    fn drain(&mut self) -> Sent {
        let now = self.pair.now;
        let victim = self.victim();
        let mut sent = Sent {
            datagrams: 0,
            bytes: 0,
        };
        let mut buf = Vec::new();
        while let Some(transmit) = victim.poll_transmit(now, 1, &mut buf) {
            sent.datagrams += 1;
            sent.bytes += transmit.size;
            buf.clear();
            assert!(sent.datagrams < 100_000, "it does not stop sending");
        }
        while victim.poll_event().is_some() {}
        while victim.poll_endpoint_event().is_some() {}
        sent
    }

    /// The code with which the victim closed; `None` while it is open.
    fn close_code(&mut self) -> Option<ErrorCode> {
        match self.victim().error()? {
            ConnectionError::Transport(error) => Some(error.code),
            other => panic!("another error: {other}"),
        }
    }
}

/// Asserts that `frames` of `attacker` make the other end close with `code` and send one datagram with it.
fn closes(attacker: Side, frames: &[u8], code: ErrorCode) {
    let mut attack = Attack::by(attacker);
    attack.send(frames);
    assert_eq!(attack.close_code(), Some(code));
    assert_eq!(attack.drain().datagrams, 1, "one CONNECTION_CLOSE");
}

/// Asserts that the connection stays open after `frames` of `attacker`.
fn stays_open(attacker: Side, frames: &[u8]) {
    let mut attack = Attack::by(attacker);
    attack.send(frames);
    assert_eq!(attack.close_code(), None);
}
