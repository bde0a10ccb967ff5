//! Self-contained HTML pages: no network, no scripts, no other files.

mod escape;
mod glance;
#[cfg(test)]
pub(crate) mod nested;
mod table;
mod verdict;

pub(crate) use escape::plain;
pub use escape::{escape, prose};
pub use glance::{Bar, Glance};
pub use table::Table;
pub use verdict::Verdict;

use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::chart::Picture;
use crate::timeline::Timeline;

pub(crate) const STYLE: &str = include_str!("style.css");

/// Fill patterns, which charts refer to by name.
pub(crate) const PATTERNS: &str = include_str!("patterns.svg");

/// Pages with more sections than this begin with a table of contents.
const UNLISTED_SECTIONS: usize = 3;

/// A page under construction. Elements are shown in the order in which they are added; all text is escaped.
#[derive(Clone, Debug)]
pub struct Report {
    title: String,
    body: String,
    /// Titles of the sections.
    sections: Vec<String>,
    /// Offset of the first section in the body.
    first_section: Option<usize>,
    footer: String,
}

impl Report {
    /// An empty page.
    pub fn new(title: impl Into<String>) -> Self {
        let title = title.into();
        let body = format!("<h1>{}</h1>\n", prose(&title));
        Self {
            title,
            body,
            sections: Vec::new(),
            first_section: None,
            footer: String::new(),
        }
    }

    /// Adds what a person gains, in one sentence; belongs directly below the title.
    #[must_use]
    pub fn gain(self, text: &str) -> Self {
        self.element("p class=\"gain\"", "p", text)
    }

    /// Adds the picture of it.
    #[must_use]
    pub fn glance(mut self, glance: &Glance) -> Self {
        glance.write(&mut self.body);
        self
    }

    /// Adds the answer of the page in one sentence; belongs below the title, or below what a person gains.
    #[must_use]
    pub fn answer(self, text: &str) -> Self {
        self.element("p class=\"answer\"", "p", text)
    }

    /// Adds an introductory line; belongs below the title, or the answer.
    #[must_use]
    pub fn lead(self, text: &str) -> Self {
        self.element("p class=\"lead\"", "p", text)
    }

    /// Begins a section. Pages with more than three sections begin with a table of contents.
    #[must_use]
    pub fn section(mut self, title: &str) -> Self {
        self.first_section.get_or_insert(self.body.len());
        self.sections.push(title.to_owned());
        let open = format!("h2 id=\"section-{}\"", self.sections.len());
        self.element(&open, "h2", title)
    }

    /// Begins a subsection.
    #[must_use]
    pub fn subsection(self, title: &str) -> Self {
        self.element("h3", "h3", title)
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.element("p", "p", text)
    }

    /// Adds a note in small print.
    #[must_use]
    pub fn note(self, text: &str) -> Self {
        self.element("p class=\"note\"", "p", text)
    }

    /// Adds a box with a verdict and its explanation.
    #[must_use]
    pub fn verdict(mut self, verdict: Verdict, text: &str) -> Self {
        let _ = writeln!(
            self.body,
            "<p class=\"verdict {}\"><strong><span aria-hidden=\"true\">{}</span> {}.</strong> {}</p>",
            verdict.class(),
            verdict.sign(),
            verdict.words(),
            prose(text)
        );
        self
    }

    /// Adds a collapsed block, for settings or raw numbers: `summary` is shown, and the content that
    /// `inside` adds on a click.
    #[must_use]
    pub fn details(mut self, summary: &str, inside: impl FnOnce(Self) -> Self) -> Self {
        let _ = writeln!(self.body, "<details><summary>{}</summary>", prose(summary));
        let mut page = inside(self);
        page.body.push_str("</details>\n");
        page
    }

    fn element(mut self, open: &str, close: &str, text: &str) -> Self {
        let _ = writeln!(self.body, "<{open}>{}</{close}>", prose(text));
        self
    }

    /// Adds key figures in large print: pairs of name and value.
    #[must_use]
    pub fn facts<'f>(mut self, facts: impl IntoIterator<Item = (&'f str, String)>) -> Self {
        self.body.push_str("<dl class=\"facts\">");
        for (name, value) in facts {
            let _ = write!(
                self.body,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                prose(name),
                prose(&value)
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
    pub fn chart(mut self, chart: &(impl Picture + ?Sized)) -> Self {
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

    /// Sets the footer with the provenance of the page: seed of the run, digest of its results, the command that repeats it
    /// and the build of the program. A page has one footer; the last call wins.
    #[must_use]
    pub fn footer(mut self, seed: u64, digest: &str, command: &str, build: &str) -> Self {
        self.footer = format!(
            "<footer><dl><dt>seed</dt><dd>{seed}</dd><dt>digest of all metrics</dt><dd>{}</dd>\
             <dt>repeat this run</dt><dd><code>{}</code></dd><dt>made with</dt><dd>{}</dd></dl></footer>\n",
            escape(digest),
            escape(command),
            escape(build)
        );
        self
    }

    /// The table of contents, if there are many sections.
    fn contents(&self) -> String {
        let mut html = String::new();
        if self.sections.len() > UNLISTED_SECTIONS {
            html.push_str("<nav aria-label=\"Contents\"><ol>");
            for (at, title) in (1..).zip(&self.sections) {
                let _ = write!(
                    html,
                    "<li><a href=\"#section-{at}\">{}</a></li>",
                    prose(title)
                );
            }
            html.push_str("</ol></nav>\n");
        }
        html
    }

    /// The complete page.
    pub fn render(&self) -> String {
        let (before, sections) = self
            .body
            .split_at(self.first_section.unwrap_or(self.body.len()));
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{PATTERNS}<main>\n{before}{}{sections}{}</main>\n</body>\n</html>\n",
            plain(&self.title),
            self.contents(),
            self.footer
        )
    }

    /// Writes the page to a file, replacing its content.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn write(&self, path: impl AsRef<Path>) -> io::Result<()> {
        std::fs::write(path, self.render())
    }
}

#[cfg(test)]
mod tests;
