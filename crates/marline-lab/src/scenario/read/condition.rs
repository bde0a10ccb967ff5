//! Reads `where`: the points at which an entry applies.

use std::collections::BTreeMap;

use super::{Place, Problem, Reader};
use crate::scenario::Value;

/// The condition `where`, which selects points of the sweep.
pub(in crate::scenario) struct Condition {
    pub(in crate::scenario) parameters: BTreeMap<String, Value>,
    /// Its place, for the error that no point fulfils it.
    pub(in crate::scenario) place: Place,
}

impl Condition {
    /// Without `where`, every point is selected.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
        Ok(match reader.get("where") {
            Some(node) => Self {
                parameters: node.values()?,
                place: node.place.clone(),
            },
            None => Self {
                parameters: BTreeMap::new(),
                place: reader.place.clone(),
            },
        })
    }
}
