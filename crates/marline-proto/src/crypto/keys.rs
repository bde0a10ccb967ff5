//! Keys that both ends derive without TLS (RFC 9001, sections 5.2 and 5.8).

use std::sync::LazyLock;

use marline_wire::{ConnectionId, Side};
use rustls::quic::{Suite, Version};

use super::provider::cipher_suite::TLS13_AES_128_GCM_SHA256;
use super::provider::{FixedNonceTag, equal};

pub(crate) use rustls::quic::{DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, Secrets};

/// Keys of the Initial packets, derived from the destination ID of the client's first packet
/// (RFC 9001, section 5.2), as `side` uses them.
pub(crate) fn initial_keys(dcid: &ConnectionId, side: Side) -> Keys {
    static SUITE: LazyLock<Suite> = LazyLock::new(|| {
        TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(|suite| suite.quic_suite())
            .expect("the provider has QUIC keys for its own TLS 1.3 suite")
    });
    let side = match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    };
    SUITE.keys(dcid, side, Version::V1)
}

/// The integrity tag of a Retry packet, given its pseudo-packet (RFC 9001, section 5.8).
pub(crate) fn retry_tag(pseudo_packet: &[u8]) -> [u8; 16] {
    /// Fixed by the RFC for version 1, so the tag detects accidents and not attackers.
    const KEY: [u8; 16] = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
    const NONCE: [u8; 12] = [
        0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
    ];
    static RETRY: LazyLock<FixedNonceTag> = LazyLock::new(|| FixedNonceTag::new(&KEY, NONCE));
    RETRY.tag(pseudo_packet)
}

/// Whether `tag` is the integrity tag of `pseudo_packet`, in constant time.
pub(crate) fn verify_retry_tag(pseudo_packet: &[u8], tag: &[u8; 16]) -> bool {
    equal(&retry_tag(pseudo_packet), tag)
}

#[cfg(test)]
mod tests;
