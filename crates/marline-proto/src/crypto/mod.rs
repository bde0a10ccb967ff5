//! Packet keys, header protection, key update, tokens (RFC 9001, sections 5 and 6).
//!
//! | question | file |
//! | --- | --- |
//! | which library computes? | `provider` |
//! | which keys exist before TLS has any? | `keys` |
//! | which keys follow from TLS in a version that it does not know of? | `traffic` |
//! | how is one packet sealed or opened? | `packet` |
//! | how is one opened that other hosts exchanged? | `inspect` |
//! | which 1-RTT key, and until when? | `one_rtt` |
//! | which client has validated its address already? | `token`, `replay` |
//! | which session does a TLS server resume without memory of it? | `tickets` |
//! | how does a secret change while what it sealed stays valid? | `rotation` |
//! | which stateless reset belongs to a connection ID? | `reset` |

pub(crate) mod inspect;
mod keys;
mod one_rtt;
mod packet;
pub(crate) mod provider;
mod replay;
mod reset;
mod rotation;
mod tickets;
mod token;
mod traffic;

pub(crate) use keys::{
    DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, initial_keys, retry_tag, rustls_version,
    verify_retry_tag,
};
pub(crate) use one_rtt::{KeyChange, OneRttKeys, OneRttPacket};
pub(crate) use packet::{OpenError, Sealing, TAG_LEN, Unprotected, open, seal, unprotect};
pub use provider::{Sha256, hmac_sha256};
pub(crate) use replay::ReplayFilter;
pub use reset::{RESET_TOKEN_LEN, ResetKey};
pub use tickets::TicketKey;
pub use token::TokenKey;
pub(crate) use token::{Token, TokenCapacity, TokenError};
pub(crate) use traffic::{SecretPair, TrafficSecrets, UpdateSecrets};
