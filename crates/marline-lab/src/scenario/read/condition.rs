//! Reads `where`: the points at which an entry applies.

use super::{Node, Place, Problem, Reader};

/// The condition `where`, which selects points of the sweep.
pub(in crate::scenario) struct Condition {
    /// The parameters, and the value of each or a list of its values.
    pub(in crate::scenario) parameters: Vec<(String, Node)>,
    /// Its place, for the error that no point fulfils it.
    pub(in crate::scenario) place: Place,
}

impl Condition {
    /// Without `where`, every point is selected.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Problem> {
        Ok(match reader.get("where") {
            Some(node) => Self {
                parameters: node.entries()?.to_vec(),
                place: node.place.clone(),
            },
            None => Self {
                parameters: Vec::new(),
                place: reader.place.clone(),
            },
        })
    }
}
