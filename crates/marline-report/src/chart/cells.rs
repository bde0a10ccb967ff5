//! Values by group and series.

/// Cells by the names of a group and of a series, both in the order of first use.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells<T> {
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<String>,
    cells: Vec<(Place, T)>,
}

/// The indices of a cell's group and series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) group: usize,
    pub(super) series: usize,
}

impl<T: Default> Cells<T> {
    pub(super) const fn new() -> Self {
        Self {
            groups: Vec::new(),
            series: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// The index of a series, which is added if it is new.
    pub(super) fn series(&mut self, name: &str) -> usize {
        index(&mut self.series, name)
    }

    /// The cell of a group and a series, which is added if it is new.
    pub(super) fn entry(&mut self, group: &str, series: &str) -> &mut T {
        let place = Place {
            group: index(&mut self.groups, group),
            series: index(&mut self.series, series),
        };
        let at = self.cells.iter().position(|cell| cell.0 == place);
        let at = at.unwrap_or_else(|| {
            self.cells.push((place, T::default()));
            self.cells.len() - 1
        });
        &mut self.cells[at].1
    }

    /// All cells with their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Place, &T)> {
        self.cells.iter().map(|(place, cell)| (*place, cell))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

fn index(names: &mut Vec<String>, name: &str) -> usize {
    let at = names.iter().position(|known| known == name);
    at.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}
