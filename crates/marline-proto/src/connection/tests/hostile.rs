//! A peer with real keys that breaks the rules: the connection ends with the code that the RFC
//! names, or the damage stays within stated limits.

mod acks;
mod frames;
mod handshake;
mod ids;
mod resources;

use super::craft::{forge_retry, varints};
use super::*;
use marline_wire::ErrorCode;

/// Two ends of an established connection, one of which does not keep to the rules.
struct Siege {
    pair: Pair,
    client: ConnectionHandle,
    server: ConnectionHandle,
    attacker: Side,
}

impl Siege {
    /// An established connection whose end `attacker` is hostile.
    fn by(attacker: Side) -> Self {
        Self::with(attacker, PairConfig::default())
    }

    fn with(attacker: Side, config: PairConfig) -> Self {
        let mut pair = Pair::with(config);
        let (client, server) = pair.establish();
        pair.drive(Duration::from_millis(200));
        Self {
            pair,
            client,
            server,
            attacker,
        }
    }

    fn attacker(&mut self) -> &mut Connection {
        match self.attacker {
            Side::Client => self.pair.client(self.client),
            Side::Server => self.pair.server(self.server),
        }
    }

    fn victim(&mut self) -> &mut Connection {
        match self.attacker {
            Side::Client => self.pair.server(self.server),
            Side::Server => self.pair.client(self.client),
        }
    }

    /// The victim gets a datagram at once.
    fn deliver(&mut self, mut datagram: Vec<u8>) {
        let now = self.pair.now;
        let victim = self.victim();
        let tuple = FourTuple {
            local: victim.local_address(),
            remote: victim.remote_address(),
        };
        victim.handle_datagram(now, tuple, None, &mut datagram);
    }

    /// The victim gets a 1-RTT packet with `frames` at once.
    fn say(&mut self, frames: &[u8]) {
        let now = self.pair.now;
        let datagram = self.attacker().craft(now, SpaceId::Data, frames);
        self.deliver(datagram);
    }

    /// What the victim would send now, thrown away; returns how many datagrams and bytes.
    fn drain(&mut self) -> (usize, usize) {
        let now = self.pair.now;
        let victim = self.victim();
        let (mut datagrams, mut bytes) = (0, 0);
        let mut buf = Vec::new();
        while let Some(transmit) = victim.poll_transmit(now, 1, &mut buf) {
            datagrams += 1;
            bytes += transmit.size;
            buf.clear();
            assert!(datagrams < 100_000, "it never stops sending");
        }
        while victim.poll_event().is_some() {}
        while victim.poll_endpoint_event().is_some() {}
        (datagrams, bytes)
    }

    /// The code with which the victim closed; `None` while it is open.
    fn verdict(&mut self) -> Option<ErrorCode> {
        match self.victim().error()? {
            ConnectionError::Transport(error) => Some(error.code),
            other => panic!("ended otherwise: {other}"),
        }
    }
}

/// Asserts that `frames` of `attacker` make the other end close with `code`, and that it says so.
fn closes(attacker: Side, frames: &[u8], code: ErrorCode) {
    let mut siege = Siege::by(attacker);
    siege.say(frames);
    assert_eq!(siege.verdict(), Some(code));
    assert_eq!(siege.drain().0, 1, "one CONNECTION_CLOSE");
}

/// Asserts that `frames` of `attacker` do no harm.
fn passes(attacker: Side, frames: &[u8]) {
    let mut siege = Siege::by(attacker);
    siege.say(frames);
    assert_eq!(siege.verdict(), None);
}
