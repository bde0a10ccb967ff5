//! Every committed experiment can be read, tables of published values included.

use std::path::Path;

use marline_lab::scenario::{Experiment, list};

#[test]
fn committed_experiments_are_read() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = list(&directory).unwrap();
    assert!(!entries.is_empty());
    for entry in entries {
        if let Err(error) = Experiment::load(&entry.path, &entry.id, &[]) {
            panic!("{error}");
        }
    }
}
