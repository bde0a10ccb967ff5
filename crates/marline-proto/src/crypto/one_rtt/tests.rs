use std::sync::Arc;

use marline_wire::packet::{ShortHeader, expand, truncate};
use marline_wire::{ConnectionId, PathId};
use rustls::quic::{self, ClientConnection, ServerConnection, Version};

use super::*;
use crate::crypto::one_rtt::{OpenedOneRtt, UpdateRefused};
use crate::crypto::{KeyChange, OneRttKeys, OneRttPacket};
use crate::handshake::Cipher;
use crate::testing::TestIdentity;

/// One end of a connection whose handshake is complete.
struct End {
    keys: OneRttKeys,
    next_number: u64,
    largest_received: Option<u64>,
}

/// The result of a received packet.
#[derive(Debug, PartialEq, Eq)]
struct Shown {
    generation: u64,
    change: Option<KeyChange>,
}

/// A packet of key `generation` that belongs to the update `change`.
fn shown(generation: u64, change: Option<KeyChange>) -> Received {
    Ok(Shown { generation, change })
}

type Received = Result<Shown, OpenError>;

impl End {
    fn new(keys: OneRttKeys) -> Self {
        Self {
            keys,
            next_number: 0,
            largest_received: None,
        }
    }

    fn send(&mut self) -> Vec<u8> {
        self.send_on(0)
    }

    fn send_on(&mut self, path_id: u32) -> Vec<u8> {
        let header = ShortHeader {
            dcid: ConnectionId::EMPTY,
            spin: false,
            key_phase: self.keys.next_key_phase().unwrap(),
        };
        let number = self.next_number;
        self.next_number += 1;
        let mut buf = Vec::new();
        let end = header.encode(truncate(number, None), false, &mut buf);
        buf.extend_from_slice(b"hello");
        let packet = Sealing {
            path_id: PathId(path_id),
            number,
            packet_start: 0,
            number_offset: end.number_offset,
            payload_offset: end.payload_offset,
        };
        self.keys.seal(packet, &mut buf);
        buf
    }

    fn receive(&mut self, packet: &[u8]) -> Received {
        self.receive_on(0, packet)
    }

    fn receive_on(&mut self, path_id: u32, packet: &[u8]) -> Received {
        let mut packet = packet.to_vec();
        let found = self.keys.unprotect(&mut packet, 1)?;
        let number = expand(self.largest_received, found.truncated, found.number_len);
        let opened: OpenedOneRtt<'_> = self.keys.open(
            OneRttPacket {
                path_id: PathId(path_id),
                number,
                largest_received: self.largest_received,
                first_byte: found.first_byte,
                payload_offset: 1 + found.number_len,
            },
            &mut packet,
        )?;
        assert_eq!(opened.payload, b"hello");
        self.largest_received = self.largest_received.max(Some(number));
        shown(opened.generation, opened.change)
    }

    /// Sends a packet to `peer`, which acknowledges it.
    fn exchange(&mut self, peer: &mut Self) {
        let number = self.next_number;
        peer.receive(&self.send()).unwrap();
        let generation = self.receive(&peer.send()).unwrap().generation;
        self.keys.on_acked(PathId(0), number, generation).unwrap();
    }
}

/// Client and server after a handshake without a network.
fn ends(cipher: Cipher) -> (End, End) {
    fn one_rtt(change: Option<quic::KeyChange>) -> Option<End> {
        match change {
            Some(quic::KeyChange::OneRtt { keys, next }) => {
                Some(End::new(OneRttKeys::new(keys, next)))
            }
            _ => None,
        }
    }

    let identity = TestIdentity::new(&["localhost"]);
    let server = Arc::new(identity.server(&[b"test"], Some(cipher)));
    let client = Arc::new(identity.client(&[b"test"], Some(cipher)));
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(client, Version::V1, name, Vec::new()).unwrap();
    let mut server = ServerConnection::new(server, Version::V1, Vec::new()).unwrap();
    let (mut at_client, mut at_server) = (None, None);
    for _ in 0..8 {
        let mut flight = Vec::new();
        at_client = at_client.or(one_rtt(client.write_hs(&mut flight)));
        server.read_hs(&flight).unwrap();
        let mut flight = Vec::new();
        at_server = at_server.or(one_rtt(server.write_hs(&mut flight)));
        client.read_hs(&flight).unwrap();
    }
    (at_client.unwrap(), at_server.unwrap())
}

/// As [`ends`], confirmed and with one packet acknowledged in each direction.
fn confirmed(cipher: Cipher) -> (End, End) {
    let (mut client, mut server) = ends(cipher);
    client.keys.on_handshake_confirmed();
    server.keys.on_handshake_confirmed();
    client.exchange(&mut server);
    server.exchange(&mut client);
    (client, server)
}

fn expire(end: &mut End) {
    end.keys.expire_previous_at(Instant::from_nanos(10));
    end.keys.on_timeout(Instant::from_nanos(9));
    assert!(end.keys.next_timeout().is_some());
    end.keys.on_timeout(Instant::from_nanos(10));
    assert_eq!(end.keys.next_timeout(), None);
}

fn fatal(received: Received) -> ErrorCode {
    match received {
        Err(OpenError::Fatal(error)) => error.code,
        other => panic!("{other:?}"),
    }
}

const UPDATED: Option<KeyChange> = Some(KeyChange::UpdatedByPeer);
const FOLLOWED: Option<KeyChange> = Some(KeyChange::Followed);

#[test]
fn either_end_initiates_updates_in_turn() {
    for cipher in Cipher::ALL {
        let (mut client, mut server) = confirmed(cipher);
        let (mut first, mut second) = (&mut client, &mut server);
        for generation in 1..5 {
            first.keys.initiate_update().unwrap();
            assert_eq!(second.receive(&first.send()), shown(generation, UPDATED));
            assert_eq!(first.receive(&second.send()), shown(generation, FOLLOWED));
            first.exchange(second);
            second.exchange(first);
            expire(first);
            expire(second);
            std::mem::swap(&mut first, &mut second);
        }
    }
}

#[test]
fn an_update_needs_confirmation_acknowledgment_and_time() {
    let (mut client, mut server) = ends(Cipher::Aes128Gcm);
    let refused = |end: &mut End| end.keys.initiate_update().unwrap_err();
    assert_eq!(refused(&mut client), UpdateRefused::NotConfirmed);
    client.keys.on_handshake_confirmed();
    assert_eq!(refused(&mut client), UpdateRefused::NotAcknowledged);
    client.exchange(&mut server);
    client.keys.initiate_update().unwrap();
    assert_eq!(refused(&mut client), UpdateRefused::NotAcknowledged);
    client.exchange(&mut server);
    assert_eq!(refused(&mut client), UpdateRefused::TooSoon);
    expire(&mut client);
    client.keys.initiate_update().unwrap();
}

#[test]
fn connections_of_few_packets_derive_no_next_keys() {
    let (mut client, _) = ends(Cipher::Aes128Gcm);
    for _ in 0..PREPARE_AFTER {
        client.send();
        assert!(client.keys.next.is_none());
    }
    client.send();
    assert!(client.keys.next.is_some());
}

#[test]
fn an_update_that_comes_before_next_keys_are_derived_is_followed() {
    let (mut client, mut server) = ends(Cipher::Aes128Gcm);
    server.keys.on_handshake_confirmed();
    server.exchange(&mut client);
    server.keys.initiate_update().unwrap();
    assert!(client.keys.next.is_none());
    assert_eq!(client.receive(&server.send()), shown(1, UPDATED));
    assert_eq!(server.receive(&client.send()), shown(1, FOLLOWED));
}

#[test]
fn a_forged_packet_of_the_other_phase_is_no_update() {
    let (mut client, mut server) = ends(Cipher::Aes128Gcm);
    let mut forged = server.send();
    // The mask of header protection leaves a flipped bit flipped.
    forged[0] ^= bits::KEY_PHASE;
    assert_eq!(client.receive(&forged), Err(OpenError::Unauthentic));
    assert_eq!(client.receive(&server.send()), shown(0, None));
}

#[test]
fn late_packets_open_with_the_previous_key() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    let late = [client.send(), client.send(), client.send()];
    client.keys.initiate_update().unwrap();
    let (overtaken, first) = (client.send(), client.send());
    assert_eq!(server.receive(&first), shown(1, UPDATED));
    assert_eq!(server.receive(&late[0]), shown(0, None));
    assert_eq!(server.receive(&overtaken), shown(1, None));
    assert_eq!(server.receive(&late[1]), shown(0, None));
    expire(&mut server);
    assert_eq!(server.receive(&late[2]), Err(OpenError::Unauthentic));
    client.exchange(&mut server);
}

#[test]
fn the_initiator_opens_packets_sent_before_its_update() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    let under_way = [server.send(), server.send()];
    client.keys.initiate_update().unwrap();
    assert_eq!(client.receive(&under_way[0]), shown(0, None));
    server.receive(&client.send()).unwrap();
    assert_eq!(client.receive(&server.send()), shown(1, FOLLOWED));
    assert_eq!(client.receive(&under_way[1]), shown(0, None));
}

#[test]
fn a_second_update_of_the_peer_is_followed_while_the_previous_key_is_kept() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    client.keys.initiate_update().unwrap();
    client.exchange(&mut server);
    expire(&mut client);
    client.keys.initiate_update().unwrap();
    assert_eq!(server.receive(&client.send()), shown(2, UPDATED));
}

#[test]
fn each_path_changes_phase_at_its_own_packet_number() {
    let (mut client, mut server) = confirmed(Cipher::ChaCha20Poly1305);
    let late = client.send_on(1);
    client.keys.initiate_update().unwrap();
    let (first, elsewhere) = (client.send(), client.send_on(1));
    assert_eq!(server.receive(&first), shown(1, UPDATED));
    // The server has received nothing on path 1 yet.
    server.largest_received = None;
    let wrong_path = server.receive_on(2, &elsewhere);
    assert_eq!(wrong_path, Err(OpenError::Unauthentic));
    assert_eq!(server.receive_on(1, &late), shown(0, None));
    assert_eq!(server.receive_on(1, &elsewhere), shown(1, None));
}

#[test]
fn an_older_key_on_a_later_packet_is_a_key_update_error() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    let number = client.next_number;
    client.next_number += 5;
    let high = client.send();
    client.next_number = number;
    client.keys.initiate_update().unwrap();
    let low = client.send();
    server.receive(&high).unwrap();
    assert_eq!(fatal(server.receive(&low)), ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn an_older_key_between_newer_ones_is_a_key_update_error() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    let number = client.next_number;
    client.next_number += 3;
    let old = client.send();
    client.keys.initiate_update().unwrap();
    let new = client.send();
    client.next_number = number;
    let low = client.send();
    server.receive(&new).unwrap();
    server.receive(&old).unwrap();
    assert_eq!(fatal(server.receive(&low)), ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn an_acknowledgment_of_new_keys_under_old_ones_is_a_key_update_error() {
    let (mut client, _) = confirmed(Cipher::Aes128Gcm);
    client.keys.initiate_update().unwrap();
    let number = client.next_number;
    client.send();
    assert_eq!(client.keys.on_acked(PathId(0), number - 1, 0), Ok(()));
    assert_eq!(client.keys.on_acked(PathId(1), number, 0), Ok(()));
    let error = client.keys.on_acked(PathId(0), number, 0).unwrap_err();
    assert_eq!(error.code, ErrorCode::KEY_UPDATE_ERROR);
}

#[test]
fn a_forged_phase_bit_does_not_update_keys() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    for _ in 0..3 {
        let mut packet = client.send();
        packet[0] ^= bits::KEY_PHASE;
        assert_eq!(server.receive(&packet), Err(OpenError::Unauthentic));
    }
    assert_eq!((server.keys.generation(), server.keys.forged), (0, 3));
    client.exchange(&mut server);
}

#[test]
fn keys_are_updated_before_the_confidentiality_limit() {
    let (mut client, mut server) = confirmed(Cipher::Aes128Gcm);
    client.keys.confidentiality_limit = 10;
    while client.keys.sealed < 5 {
        assert_eq!(client.keys.generation(), 0);
        client.exchange(&mut server);
    }
    client.exchange(&mut server);
    assert_eq!((client.keys.generation(), server.keys.generation()), (1, 1));
}

#[test]
fn a_key_that_cannot_be_updated_stops_at_the_confidentiality_limit() {
    let (mut client, _) = ends(Cipher::Aes128Gcm);
    client.keys.confidentiality_limit = 10;
    for _ in 0..10 {
        client.send();
    }
    let error = client.keys.next_key_phase().unwrap_err();
    assert_eq!(error.code, ErrorCode::AEAD_LIMIT_REACHED);
}

#[test]
fn forgeries_beyond_the_integrity_limit_end_the_connection() {
    let (_, mut server) = confirmed(Cipher::ChaCha20Poly1305);
    server.keys.integrity_limit = 2;
    let forged = [0x40; 60];
    assert_eq!(server.receive(&forged), Err(OpenError::Unauthentic));
    assert_eq!(server.receive(&forged), Err(OpenError::Unauthentic));
    assert_eq!(
        fatal(server.receive(&forged)),
        ErrorCode::AEAD_LIMIT_REACHED
    );
}
