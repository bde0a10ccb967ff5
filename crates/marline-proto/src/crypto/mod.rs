//! Packet keys, header protection, key update, tokens (RFC 9001, sections 5 and 6).
//!
//! | subject | file |
//! | --- | --- |
//! | the cryptographic library | `provider` |
//! | keys derived without TLS | `keys` |
//! | keys from TLS secrets for another version | `traffic` |
//! | protection of one packet | `packet` |
//! | packets of other hosts, for capture analysis | `inspect` |
//! | 1-RTT keys and their updates | `one_rtt` |
//! | address validation tokens | `token`, `replay` |
//! | stateless session tickets | `tickets` |
//! | rotation of token secrets | `rotation` |
//! | stateless reset tokens | `reset` |
//! | numbers of workers in connection IDs | `worker` |
//! | servers in connection IDs, for load balancers | `quic_lb` |

pub(crate) mod inspect;
mod keys;
mod one_rtt;
mod packet;
pub(crate) mod provider;
mod quic_lb;
mod replay;
mod reset;
mod rotation;
mod tickets;
mod token;
mod traffic;
mod worker;

pub(crate) use keys::{
    DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, initial_keys, retry_tag, rustls_version,
    verify_retry_tag,
};
pub(crate) use one_rtt::{KeyChange, OneRttKeys, OneRttPacket};
pub(crate) use packet::{OpenError, Sealing, TAG_LEN, Unprotected, open, seal, unprotect};
pub use provider::{Sha256, hmac_sha256};
pub use quic_lb::{
    QUIC_LB_KEY_LEN, QuicLb, QuicLbConfig, QuicLbError, QuicLbFormat, ServerId, quic_lb_key,
};
pub(crate) use replay::ReplayFilter;
pub use reset::{RESET_TOKEN_LEN, ResetKey};
pub use tickets::TicketKey;
pub use token::TokenKey;
pub(crate) use token::{Token, TokenCapacity, TokenError};
pub(crate) use traffic::{SecretPair, TrafficSecrets, UpdateSecrets};
pub use worker::{WORKER_ID_LEN, WorkerField, WorkerKey};
