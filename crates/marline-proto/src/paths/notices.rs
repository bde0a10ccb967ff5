//! Notices about paths, which are retransmitted until acknowledged (draft-ietf-quic-multipath-21, section 4).

use marline_wire::PathId;
use marline_wire::frame::{
    MaxPathId, PathAbandon, PathCidsBlocked, PathStatusAvailable, PathStatusBackup, PathsBlocked,
};

use crate::scheduling::path::PathStatus;
use crate::token::Notice;

/// Unacknowledged notices: at most three for each path, and two. A path whose PATH_ABANDON is among them is
/// not replaced by another.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    list: Vec<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    notice: Notice,
    in_flight: bool,
}

impl Notices {
    /// Queues `notice` in place of an earlier one on the same subject.
    pub(crate) fn announce(&mut self, notice: Notice) {
        self.list
            .retain(|pending| !pending.notice.is_replaced_by(&notice));
        self.list.push(Pending {
            notice,
            in_flight: false,
        });
    }

    /// Whether the PATH_ABANDON of `path` is unacknowledged.
    pub(crate) fn is_abandoning(&self, path: PathId) -> bool {
        let is_abandon = |pending: &Pending| matches!(pending.notice, Notice::Abandon { path: of, .. } if of == path);
        self.list.iter().any(is_abandon)
    }

    /// Removes all notices about `path` except its PATH_ABANDON.
    pub(crate) fn forget(&mut self, path: PathId) {
        self.list.retain(|pending| match pending.notice {
            Notice::CidsBlocked { path: of, .. } | Notice::Status { path: of, .. } => of != path,
            Notice::MaxPathId(_) | Notice::PathsBlocked(_) | Notice::Abandon { .. } => true,
        });
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether `write_frames` has something to write.
    pub(crate) fn has_frames(&self) -> bool {
        self.list.iter().any(|pending| !pending.in_flight)
    }

    /// Appends due frames while `buf` stays within `limit` bytes, and gives `tokens` the notice of each.
    pub(crate) fn write_frames(
        &mut self,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(Notice),
    ) {
        for pending in self.list.iter_mut().filter(|pending| !pending.in_flight) {
            if !pending.notice.write(buf, limit) {
                break;
            }
            pending.in_flight = true;
            tokens(pending.notice);
        }
    }

    /// Handles the acknowledgment of a notice.
    pub(crate) fn on_acked(&mut self, notice: &Notice) {
        self.list.retain(|pending| pending.notice != *notice);
    }

    /// Handles the loss of a notice: it is due again.
    pub(crate) fn on_lost(&mut self, notice: &Notice) {
        for pending in &mut self.list {
            pending.in_flight &= pending.notice != *notice;
        }
    }
}

impl Notice {
    fn is_replaced_by(&self, later: &Self) -> bool {
        match (self, later) {
            (Self::MaxPathId(_), Self::MaxPathId(_))
            | (Self::PathsBlocked(_), Self::PathsBlocked(_)) => true,
            (Self::CidsBlocked { path: a, .. }, Self::CidsBlocked { path: b, .. })
            | (Self::Abandon { path: a, .. }, Self::Abandon { path: b, .. })
            | (Self::Status { path: a, .. }, Self::Status { path: b, .. }) => a == b,
            _ => false,
        }
    }

    /// Appends the frame if it fits; returns whether it did.
    fn write(&self, buf: &mut Vec<u8>, limit: usize) -> bool {
        macro_rules! write {
            ($frame:expr) => {{
                let frame = $frame;
                let fits = buf.len() + frame.size() <= limit;
                if fits {
                    frame.encode(buf);
                }
                fits
            }};
        }
        match *self {
            Self::MaxPathId(maximum) => write!(MaxPathId { maximum }),
            Self::PathsBlocked(limit) => write!(PathsBlocked { limit }),
            Self::CidsBlocked {
                path: path_id,
                next_sequence,
            } => write!(PathCidsBlocked {
                path_id,
                next_sequence
            }),
            Self::Abandon {
                path: path_id,
                error: error_code,
            } => write!(PathAbandon {
                path_id,
                error_code
            }),
            Self::Status {
                path: path_id,
                status: PathStatus::Backup,
                sequence,
            } => write!(PathStatusBackup { path_id, sequence }),
            Self::Status {
                path: path_id,
                status: PathStatus::Available,
                sequence,
            } => write!(PathStatusAvailable { path_id, sequence }),
        }
    }
}

#[cfg(test)]
mod tests;
