//! Packet keys, header protection, key update, tokens (RFC 9001, sections 5 and 6).
//!
//! | question | file |
//! | --- | --- |
//! | where do keys come from? | `keys` |
//! | how is one packet sealed or opened? | `packet` |
//! | which 1-RTT key, and until when? | `one_rtt` |
//! | who may come back with which address? | `token`, `replay` |
//! | which stateless reset belongs to an ID? | `reset` |

mod keys;
mod one_rtt;
mod packet;
mod replay;
mod reset;
mod token;

pub(crate) use keys::{
    DirectionalKeys, HeaderProtectionKey, Keys, PacketKey, Secrets, initial_keys, retry_tag,
    verify_retry_tag,
};
pub(crate) use one_rtt::{Incoming, KeyChange, OneRttKeys};
pub(crate) use packet::{OpenError, Sealing, TAG_LEN, Unprotected, open, seal, unprotect};
pub(crate) use replay::ReplayFilter;
pub use reset::{RESET_TOKEN_LEN, ResetKey};
pub use token::TokenKey;
pub(crate) use token::{Carried, Token, TokenError};
