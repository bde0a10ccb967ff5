//! Keys that both ends derive without TLS (RFC 9001, sections 5.2 and 5.8; RFC 9369, section 3.3).

use std::sync::LazyLock;

use marline_wire::{ConnectionId, Side, Version};
use rustls::quic::Suite;

use super::provider::cipher_suite::TLS13_AES_128_GCM_SHA256;
use super::provider::{FixedNonceTag, equal};

pub(crate) use rustls::quic::{DirectionalKeys, HeaderProtectionKey, Keys, PacketKey};

/// `version` as a rustls type.
pub(crate) const fn rustls_version(version: Version) -> rustls::quic::Version {
    match version {
        Version::V1 => rustls::quic::Version::V1,
        Version::V2 => rustls::quic::Version::V2,
    }
}

/// `side` as a rustls type.
pub(super) const fn rustls_side(side: Side) -> rustls::Side {
    match side {
        Side::Client => rustls::Side::Client,
        Side::Server => rustls::Side::Server,
    }
}

/// Keys of the Initial packets of `version`, derived from the destination ID of the client's first packet
/// (RFC 9001, section 5.2), as `side` uses them.
pub(crate) fn initial_keys(version: Version, dcid: &ConnectionId, side: Side) -> Keys {
    static SUITE: LazyLock<Suite> = LazyLock::new(|| {
        TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(|suite| suite.quic_suite())
            .expect("the provider has QUIC keys for its own TLS 1.3 suite")
    });
    SUITE.keys(dcid, rustls_side(side), rustls_version(version))
}

/// The integrity tag of a Retry packet of `version`, given its pseudo-packet (RFC 9001, section 5.8).
///
/// The RFCs fix the keys, so the tag detects corruption, not attacks.
pub(crate) fn retry_tag(version: Version, pseudo_packet: &[u8]) -> [u8; 16] {
    static V1: LazyLock<FixedNonceTag> = LazyLock::new(|| {
        let key = 0xbe0c_690b_9f66_575a_1d76_6b54_e368_c84e_u128.to_be_bytes();
        let nonce = [
            0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
        ];
        FixedNonceTag::new(&key, nonce)
    });
    static V2: LazyLock<FixedNonceTag> = LazyLock::new(|| {
        let key = 0x8fb4_b01b_56ac_48e2_60fb_cbce_ad7c_cc92_u128.to_be_bytes();
        let nonce = [
            0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
        ];
        FixedNonceTag::new(&key, nonce)
    });
    match version {
        Version::V1 => V1.tag(pseudo_packet),
        Version::V2 => V2.tag(pseudo_packet),
    }
}

/// Whether `tag` is the integrity tag of `pseudo_packet` in `version`, in constant time.
pub(crate) fn verify_retry_tag(version: Version, pseudo_packet: &[u8], tag: &[u8; 16]) -> bool {
    equal(&retry_tag(version, pseudo_packet), tag)
}

#[cfg(test)]
mod tests;
