//! The memory that the allocator keeps for later.

use std::convert::Infallible;
use std::time::Duration;

/// The interval at which a server gives memory back.
const INTERVAL: Duration = Duration::from_secs(5);

/// Gives the system the memory back that a server no longer uses, at intervals. By itself the allocator does so when memory
/// is allocated or freed some time later, which does not happen in a server that is idle after a flood.
pub(crate) async fn give_back() -> Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        collect();
    }
}

#[expect(unsafe_code, reason = "a function of C")]
fn collect() {
    // SAFETY: it has no preconditions, and frees nothing that is in use.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
