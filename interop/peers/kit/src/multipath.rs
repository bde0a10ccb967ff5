//! Cases with several paths in one connection (draft-ietf-quic-multipath).
//!
//! Both ends print a line to standard error when a path comes (`path 1 opened`) or goes (`path 1 closed`), and
//! at the end what each carried.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::{sleep, timeout};

/// How often paths are looked at.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a path that was abandoned may linger.
const GONE: Duration = Duration::from_secs(10);
/// What a path has carried when a server of [`DISMISS`] abandons it, bytes.
const ENOUGH: u64 = 1 << 20;

/// The case in which the server abandons a path.
const DISMISS: &str = "multipath-dismiss";

/// The path a connection begins on.
pub const FIRST: u32 = 0;

/// UDP payload that a path carried so far, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// From this end.
    pub sent: u64,
    /// To this end.
    pub received: u64,
}

/// Ends when the path carries data; says its ID.
pub type Opening = Pin<Box<dyn Future<Output = anyhow::Result<u32>> + Send>>;

/// The paths of one connection.
pub trait Multipath: Send + Sync {
    /// Whether both ends want several paths. Known after the handshake.
    fn is_negotiated(&self) -> bool;
    /// Opens a path from another address of this host to where the connection goes.
    fn open(&self, from: IpAddr) -> Opening;
    /// Asks both ends to leave a path alone while there are others.
    ///
    /// # Errors
    /// There is no such path.
    fn set_backup(&self, path: u32) -> anyhow::Result<()>;
    /// Abandons a path.
    ///
    /// # Errors
    /// There is no such path, or no other.
    fn abandon(&self, path: u32) -> anyhow::Result<()>;
    /// The paths there are.
    fn paths(&self) -> BTreeMap<u32, Carried>;
}

/// Whether an end wants several paths in `case`.
#[must_use]
pub fn is_wanted(case: &str, serves: bool) -> bool {
    match case {
        "multipath-client-only" => !serves,
        "multipath-server-only" => serves,
        _ => case.starts_with("multipath"),
    }
}

/// Tells of paths that come and go, for as long as it is polled, and what they carried when it is dropped. A
/// server abandons one where the case wants it.
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

/// Waits until `path` is not there any more.
///
/// # Errors
/// It stays.
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
