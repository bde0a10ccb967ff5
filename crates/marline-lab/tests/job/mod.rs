//! One run of a cell.

use marline_lab::scenario::{Cell, Job};

/// The first run of `cell`, without logs.
pub(crate) fn job(cell: &Cell) -> Job {
    Job {
        experiment: "test".into(),
        variant: cell.variant.clone(),
        parameters: cell.parameters.clone(),
        repeat: 0,
        seed: 7,
        settings: cell.settings.clone(),
        qlog: None,
        pcap: None,
        har: None,
        watch: false,
    }
}
