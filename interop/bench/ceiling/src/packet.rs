//! Packet protection as in QUIC (RFC 9001, sections 5.3 and 5.4).

use anyhow::Context as _;
use bench_kit::tls;
use rustls::Side;
use rustls::quic::{DirectionalKeys, Keys, Version};

/// Length of a packet in bytes: what most stacks use with an MTU of 1,500.
pub(crate) const PACKET: usize = 1452;
/// First byte, connection ID, packet number.
const HEADER: usize = 1 + 8 + NUMBER;
const NUMBER: usize = 4;
const TAG: usize = 16;
const SAMPLE: usize = 16;
/// Payload bytes per packet.
pub(crate) const PAYLOAD: usize = PACKET - HEADER - TAG;
/// A short header with a packet number of four bytes.
const FIRST: u8 = 0x43;
const CONNECTION_ID: [u8; 8] = *b"ceiling!";

/// The keys of one end.
pub(crate) fn keys(side: Side) -> anyhow::Result<Keys> {
    let provider = tls::provider();
    let suite = provider
        .cipher_suites
        .first()
        .and_then(|suite| suite.tls13());
    let suite = suite.and_then(|suite| suite.quic_suite());
    let suite = suite.context("no keys for QUIC")?;
    Ok(suite.keys(&CONNECTION_ID, side, Version::V1))
}

/// Encrypts the payload in `packet`, and writes the header.
pub(crate) fn seal(
    keys: &DirectionalKeys,
    number: u64,
    packet: &mut [u8; PACKET],
) -> Result<(), rustls::Error> {
    let (header, rest) = packet.split_at_mut(HEADER);
    let (payload, tag) = rest.split_at_mut(PAYLOAD);
    let truncated = (number as u32).to_be_bytes();
    header[0] = FIRST;
    header[1..9].copy_from_slice(&CONNECTION_ID);
    header[9..].copy_from_slice(&truncated);
    let sealed = keys.packet.encrypt_in_place(number, header, payload)?;
    tag.copy_from_slice(sealed.as_ref());
    // The sample starts four bytes behind the start of the packet number: here, with the payload.
    let (first, number) = header.split_at_mut(1);
    keys.header
        .encrypt_in_place(&payload[..SAMPLE], &mut first[0], &mut number[8..])
}

/// Decrypts `packet` in place; returns the length of its payload.
pub(crate) fn open(keys: &DirectionalKeys, packet: &mut [u8]) -> Option<usize> {
    let (header, payload) = packet.split_at_mut_checked(HEADER)?;
    let (first, number) = header.split_at_mut(1);
    let sample = payload.get(..SAMPLE)?;
    keys.header
        .decrypt_in_place(sample, &mut first[0], &mut number[8..])
        .ok()?;
    let number = u32::from_be_bytes(header[9..].try_into().ok()?);
    let opened = keys
        .packet
        .decrypt_in_place(number.into(), header, payload)
        .ok()?;
    Some(opened.len())
}

/// The receiver's report on bytes received: twice as long as a request, so that a late report is not mistaken for one.
pub(crate) fn report(received: u64) -> [u8; 16] {
    u128::from(received).to_be_bytes()
}

/// The bytes received that `datagram` reports.
pub(crate) fn reported(datagram: &[u8]) -> Option<u64> {
    u128::from_be_bytes(datagram.try_into().ok()?)
        .try_into()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_inverts_seal_and_detects_changes() {
        let (server, client) = (keys(Side::Server).unwrap(), keys(Side::Client).unwrap());
        let mut packet = [7; PACKET];
        seal(&server.local, 300, &mut packet).unwrap();
        let mut changed = packet;
        changed[100] ^= 1;
        assert_eq!(open(&client.remote, &mut packet), Some(PAYLOAD));
        assert_eq!(packet[HEADER..][..PAYLOAD], [7; PAYLOAD]);
        assert_eq!(open(&client.remote, &mut changed), None);
        assert_eq!(open(&client.remote, &mut [0; 12]), None);
    }
}
