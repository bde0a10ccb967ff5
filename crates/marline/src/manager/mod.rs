//! Management of the paths of a client's connections: Wi-Fi and mobile at once, or one as the backup of the other.
//!
//! A [`PathManager`] applies a [`PathPolicy`] to any number of connections: it opens paths when the handshake is
//! confirmed, sets the status of backups, counts the bytes of paths that have a cap, and follows changes of the host's
//! addresses.
//!
//! | module | content |
//! | --- | --- |
//! | `policy` | what a user can configure |
//! | `connect` | the first path: a handshake from the first address that works |
//! | `machine` | decisions about the paths of a connection, without I/O |
//! | `task` | carries out these decisions |
//! | `migration` | decisions about the migration of a connection with one path, without I/O |
//! | `follow` | carries out these decisions |
//! | `addresses` | the addresses of interfaces |
//! | `budget` | the bytes that rules with a cap have left |

mod addresses;
mod budget;
mod connect;
mod follow;
mod machine;
mod migration;
mod policy;
mod task;

use std::sync::Arc;

use self::budget::Budget;
pub use self::connect::ManagedConnectError;
use self::connect::SilentAddresses;
use self::follow::Follower;
pub use self::policy::{
    AssignedInterface, InvalidPathRule, PathPolicy, PathRule, PathSource, SpentBytes,
};
use self::task::ManagerTask;
use crate::connection::Connection;
use crate::endpoint::Endpoint;

/// Opens, observes and abandons the paths of a client's connections according to a [`PathPolicy`].
///
/// * The other paths are opened when the handshake is confirmed. A path that fails is opened again after a
///   pause that doubles each time up to [`PathPolicy::longest_pause`].
/// * A path whose address or interface is removed is abandoned once another carries data; when the address
///   returns, a new path is opened at once.
/// * A path that was abandoned because the peer stopped answering is opened again after a pause; one that the
///   application of either end abandoned, after the longest pause.
/// * A path whose [cap](PathRule::cap_bytes) is spent is abandoned and not opened again, unless [`SpentBytes::reset`] begins the
///   count anew.
/// * A first path from an address that no rule names is abandoned when another carries data.
/// * Paths that the application or the connection opens are not managed, but caps apply to them, too.
///
/// If the server does not support several paths, the connection has one, and only caps apply, and what
/// [`follow`](Self::follow) does.
///
/// Clones are the same manager: caps count over all connections. The manager's tasks end with their
/// connections, and keep none of them open.
#[derive(Clone, Debug)]
pub struct PathManager {
    shared: Arc<SharedManager>,
}

#[derive(Debug)]
struct SharedManager {
    policy: PathPolicy,
    budget: Budget,
    silent: SilentAddresses,
}

impl PathManager {
    /// A manager that has no connections yet.
    pub fn new(policy: PathPolicy) -> Self {
        Self {
            shared: Arc::new(SharedManager {
                budget: Budget::new(&policy.rules),
                silent: SilentAddresses::default(),
                policy,
            }),
        }
    }

    /// The manager's policy.
    pub fn policy(&self) -> &PathPolicy {
        &self.shared.policy
    }

    /// Bytes that the paths of the rule with this index have carried so far, over all connections: [`PathRule::spent`]. Updated at
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

    /// Manages the paths of a client's connection from now on; [`connect`](Self::connect) calls this for the
    /// connections it makes. The connection's endpoint must be bound to `0.0.0.0` or `[::]`.
    pub fn manage(&self, connection: &Connection) {
        if connection.side().is_server() {
            return;
        }
        let task = ManagerTask::new(Arc::clone(&self.shared), connection);
        connection.runtime().spawn(Box::pin(task.run()));
    }

    /// Migrates the connections of a client's `endpoint` from now on, those that have one path (RFC 9000, section 9):
    ///
    /// * at once, when the host no longer has their address, or its interface is down;
    /// * when another address works, if theirs gets no answers: three probe timeouts have expired, and nothing has
    ///   arrived for a second;
    /// * when another address works that is preferred to theirs, such as that of a rule to that of a backup.
    ///
    /// The addresses are those of the rules. A policy without rules follows the system: preferred is the address of its
    /// route to the server, and where that gets no answers, all other interfaces are tried, and then another port. The
    /// endpoint must be bound to `0.0.0.0` or `[::]`, or else there must be rules: it is then moved to another socket.
    ///
    /// Each migration uses a connection ID of its own, and starts congestion control anew. The shortest time between two
    /// is a second, and doubles while they follow each other. A connection that cannot migrate ends with
    /// [`NetworkLost`](marline_proto::ConnectionError::NetworkLost) if there is another address, at once if its own is gone, and with
    /// rules, after five seconds without an answer.
    ///
    /// Where the system does not report changes, addresses are read at the interval of [`PathPolicy::poll`] while there
    /// are connections.
    pub fn follow(&self, endpoint: &Endpoint) {
        let follower = Follower::new(Arc::clone(&self.shared), endpoint.watch());
        endpoint.runtime().spawn(Box::pin(follower.run()));
    }
}
