//! Multipath cases (draft-ietf-quic-multipath).
//!
//! Both ends print a line to standard error when a path is opened (`path 1 opened`) or closed (`path 1 closed`), and
//! at the end the traffic of each.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// Interval at which paths are polled.
const GLANCE: Duration = Duration::from_millis(10);
/// Time limit for the removal of an abandoned path.
const GONE: Duration = Duration::from_secs(10);
/// Traffic of a path after which a server of [`DISMISS`] abandons it, in bytes.
const ENOUGH: u64 = 1 << 20;

/// The case in which the server abandons a path.
const DISMISS: &str = "multipath-dismiss";

/// The initial path of a connection.
pub const FIRST: u32 = 0;

/// UDP payload of a path so far, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Sent by this end.
    pub sent: u64,
    /// Received by this end.
    pub received: u64,
}

/// Completes when the path carries data, with its ID.
pub type Opening = Pin<Box<dyn Future<Output = anyhow::Result<u32>> + Send>>;

/// The paths of one connection.
pub trait Multipath: Send + Sync {
    /// Whether both ends support multipath. Known after the handshake.
    fn is_negotiated(&self) -> bool;
    /// Opens a path from another address of this host to the server.
    fn open(&self, from: IpAddr) -> Opening;
    /// Makes a path a backup at both ends.
    ///
    /// # Errors
    /// There is no such path.
    fn set_backup(&self, path: u32) -> anyhow::Result<()>;
    /// Abandons a path.
    ///
    /// # Errors
    /// There is no such path, or no other.
    fn abandon(&self, path: u32) -> anyhow::Result<()>;
    /// The existing paths.
    fn paths(&self) -> BTreeMap<u32, Carried>;
}

/// Whether an end enables multipath in `case`.
#[must_use]
pub fn is_wanted(case: &str, serves: bool) -> bool {
    match case {
        "multipath-client-only" => !serves,
        "multipath-server-only" => serves,
        _ => case.starts_with("multipath"),
    }
}

/// Reports opened and closed paths while it is polled, and their traffic when it is dropped. A server
/// abandons a path if the case requires it.
pub async fn watch(multipath: &dyn Multipath, case: &str, serves: bool) {
    let mut told = Told::default();
    let mut dismisses = serves && case == DISMISS;
    loop {
        let present = multipath.paths();
        for id in present.keys() {
            if told.present.insert(*id) {
                eprintln!("path {id} opened");
            }
        }
        told.present.retain(|id| {
            let stays = present.contains_key(id);
            if !stays {
                eprintln!("path {id} closed");
            }
            stays
        });
        told.carried.extend(&present);
        let mut others = present.iter().filter(|(id, _)| **id != FIRST);
        if dismisses && let Some((id, _)) = others.find(|(_, carried)| carried.sent > ENOUGH) {
            dismisses = false;
            if let Err(error) = multipath.abandon(*id) {
                eprintln!("path {id} stays: {error:#}");
            }
        }
        sleep(GLANCE).await;
    }
}

/// Waits until `path` is removed.
///
/// # Errors
/// If it is not removed in time.
pub async fn gone(multipath: &dyn Multipath, path: u32) -> anyhow::Result<()> {
    let look = async {
        while multipath.paths().contains_key(&path) {
            sleep(GLANCE).await;
        }
    };
    timeout(GONE, look)
        .await
        .map_err(|_| anyhow::anyhow!("path {path} is not gone after {} s", GONE.as_secs()))
}

#[derive(Default)]
struct Told {
    present: BTreeSet<u32>,
    carried: BTreeMap<u32, Carried>,
}

impl Drop for Told {
    fn drop(&mut self) {
        for (id, Carried { sent, received }) in &self.carried {
            eprintln!("path {id} carried {sent} bytes there, {received} back");
        }
    }
}
