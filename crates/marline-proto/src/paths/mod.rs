//! Paths: addresses, validation, and measured properties of the network between the ends.
//!
//! [`PathSet`] owns all paths of a connection; without the multipath extension there is one. A [`Path`] is one path
//! ID with its number space, recovery, connection IDs and send queue; below it are its successive 4-tuples.
//!
//! | subject | file |
//! | --- | --- |
//! | the paths of a connection | `set`, `list` |
//! | one path ID | `path`, `queue` |
//! | the multipath extension: limits on paths, their status | `extension`, `reserve`, `preference`, `notices` |
//! | path failure detection | `detection`, `liveness` |
//! | bundles of paths | `bundles` |
//! | 4-tuples, migration | `tuple`, `migration` |
//! | path validation, amplification limit | `validation`, `amplification` |
//! | connection IDs, ours and the peer's | `local_cids`, `remote_cids` |

mod amplification;
mod bundles;
mod detection;
mod extension;
mod list;
mod liveness;
mod local_cids;
mod migration;
mod notices;
mod path;
mod preference;
mod queue;
mod remote_cids;
mod reserve;
mod set;
mod tuple;
mod validation;

pub(crate) use amplification::AmplificationLimit;
pub(crate) use detection::Finding;
pub use extension::{AbandonPathError, OpenPathError};
pub(crate) use list::{PathList, Slot};
pub(crate) use liveness::Liveness;
pub(crate) use local_cids::LocalCids;
pub(crate) use migration::{MigrationRules, Proven, ValidationFailure};
pub(crate) use notices::Notices;
pub(crate) use path::{Path, Stage};
pub(crate) use preference::Preference;
pub(crate) use queue::{Queued, SendQueue};
pub(crate) use remote_cids::{RemoteCid, RemoteCids, TokenChange};
pub(crate) use reserve::{Reserve, Reserved};
pub(crate) use set::{FirstPath, NewPath, Openable, PacketPath, PathSet, StatusFrame};
pub(crate) use tuple::{Tuple, Tuples};
pub(crate) use validation::{ChallengePace, Proof, Responses, Validation, ValidationTimes};
