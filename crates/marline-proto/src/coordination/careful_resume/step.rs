//! What a path's controller shall do now.

use super::{Phase, Trigger};
use crate::congestion::Controller;

/// Another phase was entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The phase before.
    pub old: Phase,
    /// The phase now.
    pub new: Phase,
    /// Why; `None` where the definitions have no word for it: what is remembered is too old, promises
    /// nothing that the window has not reached, or was given up.
    pub trigger: Option<Trigger>,
}

/// A window for the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// The jump: so many bytes.
    To(u64),
    /// At most so many bytes: a controller that has less keeps it.
    AtMost(u64),
}

/// What one event leads to; most lead to nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Step {
    /// The phase that was entered, if one.
    pub phase: Option<Transition>,
    /// Whether the search for capacity ends at the present window.
    pub exit_slow_start: bool,
    /// Bandwidth in bytes per second that no estimate may exceed from now on: what was measured while too
    /// much was in flight does not count (appendix C.3).
    pub bandwidth: Option<u64>,
    /// What becomes of the window.
    pub window: Option<Window>,
    /// Where slow start ends from now on, in bytes.
    pub ssthresh: Option<u64>,
    /// Whether what is remembered of the path was wrong and must not be used again.
    pub forget: bool,
}

impl Step {
    /// Has the controller do it; nothing else is left to do than to log and to forget.
    pub fn apply(&self, controller: &mut dyn Controller) {
        if self.exit_slow_start {
            controller.exit_slow_start();
        }
        if let Some(bandwidth) = self.bandwidth
            && controller.bandwidth().is_some_and(|now| bandwidth < now)
        {
            controller.set_bandwidth(bandwidth);
        }
        match self.window {
            Some(Window::To(bytes)) => controller.set_window(bytes),
            Some(Window::AtMost(bytes)) if bytes < controller.window() => {
                controller.set_window(bytes);
            }
            Some(Window::AtMost(_)) | None => {}
        }
        if let Some(ssthresh) = self.ssthresh {
            controller.set_ssthresh(ssthresh);
        }
    }
}
