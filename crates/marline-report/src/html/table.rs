//! Tables.

use std::fmt::Write;

use super::{escape, prose};

/// The style of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Text,
    Number,
    Published,
    Code,
}

/// A table: a title for each column, then rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<(String, Kind)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column of text.
    #[must_use]
    pub fn column(self, title: &str) -> Self {
        self.with(title, Kind::Text)
    }

    /// Adds a column of numbers, set to the right.
    #[must_use]
    pub fn number_column(self, title: &str) -> Self {
        self.with(title, Kind::Number)
    }

    /// Adds a column of published numbers, in a style of their own.
    #[must_use]
    pub fn published_column(self, title: &str) -> Self {
        self.with(title, Kind::Published)
    }

    /// Adds a column in a fixed-width font, for checksums and names.
    #[must_use]
    pub fn code_column(self, title: &str) -> Self {
        self.with(title, Kind::Code)
    }

    fn with(mut self, title: &str, kind: Kind) -> Self {
        self.columns.push((title.to_owned(), kind));
        self
    }

    /// Whether there are no rows.
    pub const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a row with a cell for each column; further cells are not shown.
    pub fn row<C: Into<String>>(&mut self, cells: impl IntoIterator<Item = C>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    pub(super) fn write(&self, html: &mut String) {
        html.push_str("<div class=\"scroll rows\"><table><thead><tr>");
        for (title, kind) in &self.columns {
            let _ = write!(html, "<th{}>{}</th>", class(*kind), prose(title));
        }
        html.push_str("</tr></thead><tbody>");
        for row in &self.rows {
            html.push_str("<tr>");
            let empty = String::new();
            let cells = row.iter().chain(std::iter::repeat(&empty));
            for ((_, kind), cell) in self.columns.iter().zip(cells) {
                let cell = match kind {
                    Kind::Code => escape(cell),
                    _ => prose(cell),
                };
                let _ = write!(html, "<td{}>{cell}</td>", class(*kind));
            }
            html.push_str("</tr>");
        }
        html.push_str("</tbody></table></div>\n");
    }
}

const fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "",
        Kind::Number => " class=\"number\"",
        Kind::Published => " class=\"number theirs\"",
        Kind::Code => " class=\"code\"",
    }
}
