//! The points at which a variant is farthest from the ideal of the links.

use std::fmt;

use super::must::at;
use super::{CellResult, Results};

/// The cells of a variant, those farthest from the ideal first.
#[derive(Clone, Debug, PartialEq)]
pub struct Worst<'a> {
    /// The variant.
    pub variant: &'a str,
    /// Cells with a known ratio to the ideal, the largest ratio first; as many as requested.
    pub cells: Vec<&'a CellResult>,
    /// Cells of the variant with a known ratio, including those not listed.
    pub known: usize,
    /// Cells with an unknown ratio: none of their runs counts, or their links have no ideal.
    pub unknown: Vec<&'a CellResult>,
}

impl Results {
    /// The `count` cells of `variant`, by default the first, that are farthest from the ideal by
    /// [`CellResult::ideal_ratio`]. `None` if there is no such variant.
    pub fn worst(&self, variant: Option<&str>, count: usize) -> Option<Worst<'_>> {
        let is_it = |cell: &&CellResult| variant.is_none_or(|name| cell.variant == name);
        let variant = self.cells.iter().find(is_it)?.variant.as_str();
        let of_it = self.cells.iter().filter(|cell| cell.variant == variant);
        let (mut cells, unknown): (Vec<_>, Vec<_>) =
            of_it.partition(|cell| cell.ideal_ratio.is_some());
        let known = cells.len();
        // Equal ratios stay in the order of the points.
        cells.sort_by(|one, other| {
            let [one, other] = [one, other].map(|cell| cell.ideal_ratio.unwrap_or_default());
            other.total_cmp(&one)
        });
        cells.truncate(count);
        Some(Worst {
            variant,
            cells,
            known,
            unknown,
        })
    }
}

/// The cells that are not in [`Worst::cells`], as a sentence: how many more cells there are, and where the ratio is
/// unknown.
impl fmt::Display for Worst<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (listed, variant) = (self.cells.len(), self.variant);
        let known = self.known;
        write!(
            f,
            "{listed} of {known} points of {variant} with a known ratio"
        )?;
        if self.unknown.is_empty() {
            return Ok(());
        }
        let points: Vec<_> = self
            .unknown
            .iter()
            .map(|cell| at(&cell.parameters))
            .collect();
        let points: Vec<_> = points
            .into_iter()
            .filter(|point| !point.is_empty())
            .collect();
        write!(f, "; it is not known at {}", self.unknown.len())?;
        match points.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", points.join("; ")),
        }
    }
}
