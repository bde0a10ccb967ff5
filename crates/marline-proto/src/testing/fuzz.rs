//! The checks of the fuzz targets, callable from tests: each function panics if its input breaks a rule.

mod connection;
mod coordination;
mod script;
mod tokens;

use std::time::Duration;

use marline_wire::frame::{Ack, PathAck};
use marline_wire::packet::{self, Packet, expand, truncate, truncate_for_reordering};
use marline_wire::{Frame, Frames, Side, TransportParameters, varint};

pub use connection::check_connection;
pub use coordination::{check_bundle, check_careful_resume};
pub use script::{Script, Step};
pub use tokens::{check_address_token, check_record};

use super::{Direction, Pair};

/// Checks any datagram: the parts of a packet lie within it, and routing agrees with parsing.
///
/// # Panics
///
/// If they do not.
pub fn check_header(id_len: u8, clear_fixed_bit: bool, bytes: &[u8]) {
    let id_len = usize::from(id_len % 21);
    let destination = packet::destination(bytes, id_len);
    match packet::parse(bytes, id_len, clear_fixed_bit) {
        Ok(Packet::Protected(header)) => {
            assert!(header.number_offset <= header.len && header.len <= bytes.len());
            assert!(header.token(bytes).len() <= bytes.len());
            assert_eq!(destination, Some(&*header.dcid));
        }
        Ok(Packet::VersionNegotiation(offer)) => {
            assert!(offer.versions().count() <= bytes.len() / 4);
        }
        Ok(_) | Err(_) => {}
    }
}

/// Checks any packet numbers: one is recovered after truncation if the largest acknowledged one is near enough (RFC
/// 9000, appendix A).
///
/// # Panics
///
/// If it does not.
pub fn check_packet_number(number: u64, largest: Option<u64>, truncated: u32, len: u8) {
    let _ = expand(largest, truncated, len.into());

    let number = number & varint::MAX;
    let largest = largest.map(|largest| largest & varint::MAX);
    let known = largest.filter(|largest| *largest < number && number - *largest < 1 << 31);
    if known.is_some() || number < 1 << 31 {
        for short in [
            truncate(number, known),
            truncate_for_reordering(number, known),
        ] {
            assert_eq!(expand(known, short.value(), short.len()), number);
        }
    }
}

/// Checks any payload: there are no more frames than bytes, ranges are in order, and an encoded frame is decoded
/// to the same frame.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check_frames(payload: &[u8]) {
    let mut count = 0;
    for frame in Frames::new(payload) {
        count += 1;
        let Ok(frame) = frame else { break };
        if let Frame::Ack(ack) | Frame::PathAck(PathAck { ack, .. }) = frame {
            check_ranges(&ack);
        }
        let _ = (frame.is_ack_eliciting(), frame.is_probing());
        check_writing(&frame);
    }
    assert!(count <= payload.len());
}

/// Integers may be longer than necessary in a received frame, but not in an encoded one.
fn check_writing(frame: &Frame<'_>) {
    let written = encoded(frame);
    let mut frames = Frames::new(&written);
    let again = frames.next().expect("a frame").expect("a valid frame");
    assert!(frames.next().is_none());
    assert_eq!(again.frame_type(), frame.frame_type());
    assert_eq!(encoded(&again), written);
}

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut written = Vec::new();
    frame.encode(&mut written);
    written
}

fn check_ranges(ack: &Ack<'_>) {
    let mut below = None;
    for range in ack.ranges() {
        assert!(range.start() <= range.end());
        assert!(below.is_none_or(|below| *range.end() + 1 < below));
        below = Some(*range.start());
    }
}

/// Checks any transport parameters: valid ones do not change when they are encoded again.
///
/// # Panics
///
/// If they change.
pub fn check_transport_parameters(bytes: &[u8]) {
    for side in [Side::Client, Side::Server] {
        if let Ok(params) = TransportParameters::decode(side, bytes) {
            let mut encoded = Vec::new();
            params.encode(&mut encoded);
            let again = TransportParameters::decode(side, &encoded).expect("our own encoding");
            let mut twice = Vec::new();
            again.encode(&mut twice);
            assert_eq!(encoded, twice);
        }
    }
}

/// A datagram for [`check_endpoint`]: whether it is sent to the server, how it is altered and delivered, and its
/// bytes. A tuple, so that `arbitrary` supports it without a dependency of this crate.
///
/// The lowest bit of the second value replaces its destination by the ID of the open connection, the next one pads
/// it to 1,200 bytes, and the others are the milliseconds until the next datagram.
pub type FuzzedDatagram = (bool, u8, Vec<u8>);

/// Limit on events, a large multiple of those of an input.
const MAX_STEPS: u32 = 20_000;

/// Checks any datagrams, delivered to a server and a client `progress` milliseconds (modulo 64) after the start of
/// their handshake, in virtual time: the time advances.
///
/// # Panics
///
/// If it does not, or an endpoint panics.
pub fn check_endpoint(progress: u8, datagrams: Vec<FuzzedDatagram>) {
    let mut pair = Pair::new();
    let client = pair.connect();
    pair.drive(Duration::from_millis(u64::from(progress % 64)));
    let id = pair.client.connections.get(&client).map(|connection| {
        let id = connection.original_destination();
        id.to_vec()
    });
    for (to_server, place, mut bytes) in datagrams.into_iter().take(16) {
        // Half of them have the ID of the open connection.
        if let Some(id) = id.as_ref().filter(|_| place & 1 == 1)
            && bytes.len() > 6 + id.len()
        {
            let offset = if bytes[0] & 0x80 == 0 { 1 } else { 6 };
            bytes[offset..offset + id.len()].copy_from_slice(id);
        }
        if place & 2 == 2 {
            bytes.resize(bytes.len().max(1200), 0);
        }
        let direction = match to_server {
            true => Direction::ToServer,
            false => Direction::ToClient,
        };
        pair.deliver(direction, bytes);
        let until = pair.now + Duration::from_millis(u64::from(place >> 2));
        let mut steps = 0;
        while pair.step(until) {
            steps += 1;
            assert!(steps < MAX_STEPS, "no progress");
        }
    }
}
