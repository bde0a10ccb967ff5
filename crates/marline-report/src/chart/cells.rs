//! Values by group and series.

/// Cells by the names of a group and of a series, both in the order in which they first came.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells<T> {
    pub(super) groups: Vec<String>,
    pub(super) series: Vec<String>,
    cells: Vec<(usize, usize, T)>,
}

impl<T: Default> Cells<T> {
    pub(super) const fn new() -> Self {
        Self {
            groups: Vec::new(),
            series: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// The place of a series, which is new if its name is.
    pub(super) fn series(&mut self, name: &str) -> usize {
        place(&mut self.series, name)
    }

    /// The cell of a group and a series; an empty one if there was none.
    pub(super) fn entry(&mut self, group: &str, series: &str) -> &mut T {
        let group = place(&mut self.groups, group);
        let series = place(&mut self.series, series);
        let at = self
            .cells
            .iter()
            .position(|c| (c.0, c.1) == (group, series));
        let at = at.unwrap_or_else(|| {
            self.cells.push((group, series, T::default()));
            self.cells.len() - 1
        });
        &mut self.cells[at].2
    }

    /// All cells: place of the group, place of the series, value.
    pub(super) fn iter(&self) -> impl Iterator<Item = (usize, usize, &T)> {
        self.cells
            .iter()
            .map(|(group, series, cell)| (*group, *series, cell))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

fn place(names: &mut Vec<String>, name: &str) -> usize {
    let at = names.iter().position(|known| known == name);
    at.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    })
}
