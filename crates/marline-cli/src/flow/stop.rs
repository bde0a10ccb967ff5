//! Ending before the end of the packets.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use crate::server::interrupted;

/// Whether somebody wants the end.
pub(super) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Set by Ctrl-C and SIGTERM.
    pub(super) fn on_interrupt() -> Self {
        let asked = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&asked);
        // It ends with the process.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            if let Ok(runtime) = runtime {
                runtime.block_on(interrupted());
                set.store(true, Relaxed);
            }
        });
        Self(asked)
    }

    pub(super) fn is_asked_for(&self) -> bool {
        self.0.load(Relaxed)
    }
}
