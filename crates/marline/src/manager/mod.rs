//! Which paths a client's connections have: Wi-Fi and mobile at once, or one behind the other.
//!
//! A [`PathManager`] follows a [`PathPolicy`] for any number of connections: it opens paths when the
//! handshake is confirmed, says which are backups, counts bytes where they cost something, and follows
//! addresses that come and go.
//!
//! | question | file |
//! | --- | --- |
//! | what may a user want? | `policy` |
//! | where does the first path begin? | `connect` |
//! | what is to be done now? | `machine` |
//! | who does it? | `task` |
//! | which address has an interface? | `addresses` |
//! | how much may a path still carry? | `budget` |

mod addresses;
mod budget;
mod connect;
mod machine;
mod policy;
mod task;

use std::sync::Arc;

use self::budget::Budget;
pub use self::connect::ManagedConnectError;
pub use self::policy::{InvalidPathRule, PathPolicy, PathRule, PathSource};
use self::task::Task;
use crate::connection::Connection;

/// Opens, watches and abandons the paths of a client's connections as a [`PathPolicy`] says.
///
/// * The other paths are opened when the handshake is confirmed. What fails is tried again, after a pause
///   that doubles each time up to [`PathPolicy::longest_pause`].
/// * A path whose address or interface goes away is abandoned once another carries data; when it comes
///   back, a new one is opened at once.
/// * A path that was given up because it fell silent is opened again after a pause; one that the application
///   of either end abandoned, after the longest.
/// * A path whose [cap](PathRule::cap_bytes) is spent is abandoned for good.
/// * A first path from an address that no rule names is abandoned when another carries data.
/// * Paths that the application opens itself, or the connection by itself, are left alone; but caps hold
///   for them, too.
///
/// If the server takes no more than one path, the connection keeps its first: caps hold, nothing else
/// happens.
///
/// Clones are the same manager: caps count over all connections. The manager's tasks end with their
/// connections, and keep none of them open.
#[derive(Clone, Debug)]
pub struct PathManager {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    policy: PathPolicy,
    budget: Budget,
}

impl PathManager {
    /// A manager that has no connections yet.
    pub fn new(policy: PathPolicy) -> Self {
        Self {
            shared: Arc::new(Shared {
                budget: Budget::new(&policy.rules),
                policy,
            }),
        }
    }

    /// What it goes by.
    pub fn policy(&self) -> &PathPolicy {
        &self.shared.policy
    }

    /// Bytes that the rule with this index has spent so far, over all connections. They are counted at
    /// least once a second.
    pub fn spent(&self, rule: usize) -> u64 {
        self.shared.budget.spent(rule)
    }

    /// The rules whose caps are spent.
    pub fn spent_rules(&self) -> impl Iterator<Item = &PathRule> {
        let rules = self.shared.policy.rules.iter().enumerate();
        let is_spent = |index| self.shared.budget.left(index) == Some(0);
        rules.filter_map(move |(index, rule)| is_spent(index).then_some(rule))
    }

    /// Manages the paths of a client's connection from now on. [`connect`](Self::connect) does that for its
    /// own. Its endpoint must be bound to `0.0.0.0` or `[::]`.
    pub fn manage(&self, connection: &Connection) {
        if connection.side().is_server() {
            return;
        }
        let task = Task::new(Arc::clone(&self.shared), connection);
        connection.runtime().spawn(Box::pin(task.run()));
    }
}
