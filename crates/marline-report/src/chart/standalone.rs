//! Figures of a page as SVG files of their own: with title, legend, note and style, in light and dark.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::canvas::{LETTER, WIDTH};
use crate::html::{PATTERNS, STYLE, plain};

const MARGIN: f64 = 14.0;
/// Height of a line of text.
const LINE: f64 = 18.0;
/// Width of a swatch of a legend, and the space between its entries.
const SWATCH: f64 = 30.0;
const GAP: f64 = 20.0;
/// Longest name of a file.
const LONGEST_NAME: usize = 60;

/// The form of texts that are HTML in a page.
const TEXT: &str = "text { font: 12px system-ui, -apple-system, \"Segoe UI\", Roboto, \"Helvetica Neue\", sans-serif; fill: var(--quiet); }\n\
    .caption { font-size: 15px; font-weight: 600; fill: var(--ink); }\n\
    .name { font-weight: 600; fill: var(--ink); }\n\
    .paper { fill: var(--paper); }\n";

/// A link that saves a figure, whose content is that of a page, as SVG.
pub(super) fn link(title: &str, note: &str, content: &str) -> String {
    let file = file(title, note, content);
    format!(
        "<p class=\"save\"><a download=\"{}.svg\" href=\"data:image/svg+xml,{}\">Save as SVG</a></p>",
        name(title),
        encoded(&file)
    )
}

/// The SVG file of a figure.
fn file(title: &str, note: &str, content: &str) -> String {
    let mut drawing = Drawing {
        body: String::new(),
        y: MARGIN,
    };
    drawing.lines(title, "caption", WIDTH / (1.3 * LETTER));
    for part in parts(content) {
        match part {
            Part::Title(name) => drawing.line(name, "name"),
            Part::Legend(entries) => drawing.legend(entries),
            Part::Picture(svg) => drawing.picture(svg),
        }
    }
    drawing.lines(note, "note", WIDTH / (0.9 * LETTER));
    let (width, height) = (WIDTH + 2.0 * MARGIN, drawing.y + MARGIN);
    let Style { rules, patterns } = style(&drawing.body);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height:.0}\" viewBox=\"0 0 {width} {height:.0}\">\
         <title>{}</title><style>\n{rules}</style><defs>{patterns}</defs>\
         <rect class=\"paper\" width=\"{width}\" height=\"{height:.0}\"/>{}</svg>",
        plain(title),
        drawing.body
    )
}

/// A figure under construction, from top to bottom.
struct Drawing {
    body: String,
    y: f64,
}

impl Drawing {
    /// Writes a line; `text` is escaped already.
    fn line(&mut self, text: &str, class: &str) {
        self.y += LINE;
        let _ = write!(
            self.body,
            "<text class=\"{class}\" x=\"{MARGIN}\" y=\"{:.1}\">{text}</text>",
            self.y - 5.0
        );
    }

    /// Writes a text in lines of up to so many letters.
    fn lines(&mut self, text: &str, class: &str, letters: f64) {
        let mut line = String::new();
        for word in text.split_whitespace() {
            let length = line.chars().count() + 1 + word.chars().count();
            if !line.is_empty() && length as f64 > letters {
                self.line(&plain(&line), class);
                line.clear();
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.is_empty() {
            self.line(&plain(&line), class);
        }
    }

    /// Writes the entries of a legend, in as many lines as they need.
    fn legend(&mut self, entries: &str) {
        let mut x = MARGIN;
        for entry in entries.split("<li>").skip(1) {
            let Some((swatch, name)) = entry.split_once("</svg>") else {
                continue;
            };
            let swatch = swatch.split_once('>').map_or("", |(_, inside)| inside);
            let name = name.split("</li>").next().unwrap_or(name);
            let width = SWATCH + 6.0 + LETTER * name.chars().count() as f64;
            if x == MARGIN || x + width > WIDTH {
                x = MARGIN;
                self.y += LINE;
            }
            let _ = write!(
                self.body,
                "<svg x=\"{x:.1}\" y=\"{:.1}\" width=\"{SWATCH}\" height=\"12\">{swatch}</svg>\
                 <text x=\"{:.1}\" y=\"{:.1}\">{name}</text>",
                self.y - 15.0,
                x + SWATCH + 6.0,
                self.y - 5.0
            );
            x += width + GAP;
        }
    }

    /// Places a chart.
    fn picture(&mut self, svg: &str) {
        let view = svg.split_once("viewBox=\"0 0 ").and_then(|(_, view)| {
            let (width, rest) = view.split_once(' ')?;
            let (height, rest) = rest.split_once('"')?;
            let inside = rest.split_once('>')?.1;
            Some((width, height, inside, height.parse::<f64>().ok()?))
        });
        let Some((width, height, inside, high)) = view else {
            return;
        };
        let _ = write!(
            self.body,
            "<svg class=\"chart\" x=\"{MARGIN}\" y=\"{:.1}\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">{inside}",
            self.y
        );
        self.y += high + 4.0;
    }
}

/// A part of a figure's content.
#[derive(Debug, PartialEq)]
enum Part<'c> {
    /// The title of one of several charts.
    Title(&'c str),
    /// The entries of a legend.
    Legend(&'c str),
    /// A chart, with its tags.
    Picture(&'c str),
}

/// The parts of a figure's content, in their order.
fn parts(content: &str) -> Vec<Part<'_>> {
    const TITLE: &str = "<div class=\"panel\"><b>";
    const LEGEND: &str = "<ul class=\"key\">";
    const PICTURE: &str = "<svg class=\"chart\"";
    let mut parts = Vec::new();
    let mut rest = content;
    loop {
        let next = [TITLE, LEGEND, PICTURE]
            .into_iter()
            .filter_map(|mark| Some((rest.find(mark)?, mark)));
        let Some((at, mark)) = next.min() else {
            return parts;
        };
        rest = &rest[at..];
        let inside = &rest[mark.len()..];
        let (part, length) = match mark {
            TITLE => {
                let title = inside.split("</b>").next().unwrap_or_default();
                (Part::Title(title), mark.len() + title.len())
            }
            LEGEND => {
                let entries = inside.split("</ul>").next().unwrap_or_default();
                (Part::Legend(entries), mark.len() + entries.len())
            }
            _ => {
                let length = element(rest);
                (Part::Picture(&rest[..length]), length)
            }
        };
        parts.push(part);
        rest = &rest[length..];
    }
}

/// The length of the SVG element with which `html` begins; charts have others inside.
fn element(html: &str) -> usize {
    let mut depth = 0_usize;
    for (at, _) in html.match_indices('<') {
        let tag = &html[at..];
        if tag.starts_with("<svg") {
            depth += 1;
        } else if tag.starts_with("</svg>") {
            depth -= 1;
            if depth == 0 {
                return at + "</svg>".len();
            }
        }
    }
    html.len()
}

/// The rules and patterns that a drawing needs.
struct Style {
    rules: String,
    patterns: String,
}

fn style(body: &str) -> Style {
    // The variables come first, for both color schemes; the rules for small screens and printers last.
    let (variables, rest) = STYLE.split_once("* {").unwrap_or(("", STYLE));
    let (rest, _) = rest.split_once("@media").unwrap_or((rest, ""));
    let rules: Vec<(&str, &str)> = rest
        .split_inclusive('}')
        .filter_map(|rule| rule.trim().trim_end_matches('}').split_once('{'))
        .collect();
    let mut used = classes(body);
    used.insert("chart");
    let chosen = |used: &BTreeSet<&str>| -> Vec<(&str, &str)> {
        let all = rules.iter().copied();
        all.filter(|(selector, _)| applies(selector, used))
            .collect()
    };
    let filled = chosen(&used);
    let patterns: String = PATTERNS
        .lines()
        .filter(|line| {
            let id = line
                .split_once("id=\"")
                .and_then(|(_, id)| id.split('"').next());
            id.is_some_and(|id| {
                let fill = format!("url(#{id})");
                filled.iter().any(|(_, block)| block.contains(&fill))
            })
        })
        .collect();
    used.extend(classes(PATTERNS).iter().filter(|class| {
        let inside = [format!("class=\"{class}\"")];
        inside.iter().any(|class| patterns.contains(class))
    }));
    let mut text = variables.to_owned() + TEXT;
    for (selector, block) in chosen(&used) {
        let _ = writeln!(text, "{} {{{block}}}", selector.trim());
    }
    Style {
        rules: text,
        patterns,
    }
}

/// Whether a selector can apply to elements that have only `used` classes.
fn applies(selector: &str, used: &BTreeSet<&str>) -> bool {
    // The size of charts in a page is not theirs in a file.
    let selectors = selector.split(',').map(str::trim);
    selectors.filter(|one| *one != ".chart").any(|one| {
        let mut classes = one.split('.').skip(1).peekable();
        classes.peek().is_some()
            && classes.all(|class| {
                let class = class.split([' ', ':', '>']).next().unwrap_or(class);
                used.contains(class)
            })
    })
}

/// The classes of the elements in `html`.
fn classes(html: &str) -> BTreeSet<&str> {
    let lists = html.split("class=\"").skip(1);
    lists
        .filter_map(|rest| rest.split('"').next())
        .flat_map(str::split_whitespace)
        .collect()
}

/// The name of a file for a figure with this title.
fn name(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars() {
        if name.len() >= LONGEST_NAME {
            break;
        }
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
    }
    match name.trim_end_matches('-') {
        "" => "figure".to_owned(),
        name => name.to_owned(),
    }
}

/// Text in a URL of a quoted attribute.
fn encoded(text: &str) -> String {
    let mut url = String::with_capacity(text.len() * 5 / 4);
    for c in text.chars() {
        match c {
            '%' | '#' | '"' | '<' | '>' | '&' | '\'' | '\n' | '\t' => {
                let _ = write!(url, "%{:02X}", u32::from(c));
            }
            // Pages refer to nothing outside, not even by the name of a namespace.
            ':' => url.push_str("%3A"),
            c => url.push(c),
        }
    }
    url
}

#[cfg(test)]
mod tests;
