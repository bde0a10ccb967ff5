//! Paths: where packets go, and what is known about the way.
//!
//! | question | file |
//! | --- | --- |
//! | which addresses, and what is known of each pair? | `tuple` |
//! | does the peer receive there? | `validation` |
//! | how much may be sent there before we know? | `amplification` |
//! | how large may datagrams be? | `mtu` |
//! | are ECN marks carried? | `ecn` |
//! | which connection IDs are ours, which the peer's? | `local_cids`, `remote_cids` |
//! | which paths may be opened? | `reserve` |
//! | how do the ends want a path used? | `preference` |
//! | what must the peer hear of paths? | `notices` |
//! | does a path still answer? | `liveness` |

mod amplification;
mod ecn;
mod liveness;
mod local_cids;
mod mtu;
mod notices;
mod preference;
mod remote_cids;
mod reserve;
mod tuple;
mod validation;

pub(crate) use amplification::AmplificationLimit;
pub(crate) use ecn::{EcnLedger, EcnState, EcnValidation};
pub(crate) use liveness::Liveness;
pub(crate) use local_cids::LocalCids;
pub(crate) use mtu::MtuDiscovery;
pub(crate) use notices::{Notice, Notices};
pub(crate) use preference::Preference;
pub(crate) use remote_cids::{RemoteCids, TokenChange};
pub(crate) use reserve::{Reserve, Reserved};
pub(crate) use tuple::{Tuple, Tuples};
pub(crate) use validation::{Proof, Responses, Validation};
