//! The status of a path as requested by both ends (draft-ietf-quic-multipath-21, section 3.3).

use crate::scheduling::path::PathStatus;

/// The status that each end has set for a path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Preference {
    ours: PathStatus,
    /// Sequence number of the next frame.
    sequence: u64,
    theirs: PathStatus,
    /// Minimum sequence number of a newer frame of the peer.
    expected: u64,
}

impl Preference {
    /// The status of the path: backup if either end has set it.
    pub(crate) fn status(&self) -> PathStatus {
        match (self.ours, self.theirs) {
            (PathStatus::Available, PathStatus::Available) => PathStatus::Available,
            _ => PathStatus::Backup,
        }
    }

    /// Sets our status; returns the sequence number of the frame that announces it.
    pub(crate) fn set(&mut self, status: PathStatus) -> Option<u64> {
        if self.ours == status {
            return None;
        }
        self.ours = status;
        let sequence = self.sequence;
        self.sequence += 1;
        Some(sequence)
    }

    /// Handles the peer's frame number `sequence`; returns whether it is newer.
    pub(crate) fn on_frame(&mut self, status: PathStatus, sequence: u64) -> bool {
        if sequence < self.expected {
            return false;
        }
        self.expected = sequence + 1;
        std::mem::replace(&mut self.theirs, status) != status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_with_old_sequence_numbers_change_nothing() {
        let mut preference = Preference::default();
        assert!(preference.on_frame(PathStatus::Backup, 5));
        assert_eq!(preference.status(), PathStatus::Backup);
        assert!(!preference.on_frame(PathStatus::Available, 5));
        assert!(!preference.on_frame(PathStatus::Available, 3));
        assert_eq!(preference.status(), PathStatus::Backup);
        assert!(preference.on_frame(PathStatus::Available, 6));
        assert_eq!(preference.status(), PathStatus::Available);
    }

    #[test]
    fn each_change_of_status_has_the_next_sequence_number() {
        let mut preference = Preference::default();
        assert_eq!(preference.set(PathStatus::Available), None);
        assert_eq!(preference.set(PathStatus::Backup), Some(0));
        assert_eq!(preference.set(PathStatus::Available), Some(1));
    }
}
