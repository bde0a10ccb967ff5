//! Pages that need nothing else: no network, no scripts, no files beside them.

mod escape;
#[cfg(test)]
pub(crate) mod nested;
mod table;

pub use escape::escape;
pub use table::Table;

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::chart::Picture;
use crate::timeline::Timeline;

const STYLE: &str = include_str!("style.css");

/// Fills that tell spans apart without color; charts refer to them by name.
const PATTERNS: &str = include_str!("patterns.svg");

/// A page in the making: parts show in the order they were added. All text is escaped.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    body: String,
}

impl Report {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        let body = format!("<h1>{}</h1>\n", escape(&title));
        Self { title, body }
    }

    /// Adds a line that says what the page is about; belongs right below the title.
    #[must_use]
    pub fn lead(self, text: &str) -> Self {
        self.element("p class=\"lead\"", "p", text)
    }

    /// Begins a section.
    #[must_use]
    pub fn section(self, title: &str) -> Self {
        self.element("h2", "h2", title)
    }

    /// Begins a part of a section.
    #[must_use]
    pub fn subsection(self, title: &str) -> Self {
        self.element("h3", "h3", title)
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.element("p", "p", text)
    }

    /// Adds small print.
    #[must_use]
    pub fn note(self, text: &str) -> Self {
        self.element("p class=\"note\"", "p", text)
    }

    fn element(mut self, open: &str, close: &str, text: &str) -> Self {
        let _ = writeln!(self.body, "<{open}>{}</{close}>", escape(text));
        self
    }

    /// Adds the numbers that matter most, large: what, how much.
    #[must_use]
    pub fn facts<'f>(mut self, facts: impl IntoIterator<Item = (&'f str, String)>) -> Self {
        self.body.push_str("<dl class=\"facts\">");
        for (name, value) in facts {
            let _ = write!(
                self.body,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                escape(name),
                escape(&value)
            );
        }
        self.body.push_str("</dl>\n");
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: &Table) -> Self {
        table.write(&mut self.body);
        self
    }

    /// Adds a picture, unless it is empty.
    #[must_use]
    pub fn chart(mut self, chart: &impl Picture) -> Self {
        if !chart.is_empty() {
            self.body.push_str(&chart.to_html());
        }
        self
    }

    /// Adds the charts of a connection.
    #[must_use]
    pub fn timeline(self, timeline: &Timeline) -> Self {
        timeline
            .charts()
            .iter()
            .fold(self, |page, chart| page.chart(chart))
    }

    /// The whole page.
    pub fn render(&self) -> String {
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{PATTERNS}<main>\n{}</main>\n</body>\n</html>\n",
            escape(&self.title),
            self.body
        )
    }

    /// Writes the page to a file, replacing what is there.
    ///
    /// # Errors
    ///
    /// Those of the file system.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.render())
    }
}

#[cfg(test)]
mod tests;
