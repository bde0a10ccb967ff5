//! Pages to load: published ones, of which only counts and sizes are known, and current ones. Other properties are
//! drawn at random: a page is a pure function of its name and a seed.
//!
//! | name | content |
//! | --- | --- |
//! | `cloned/NAME` | one of 15 pages that were copied to one server; counts by kind and the size are published |
//! | `images` | a document and 20 images, 8 MB together, on one server |
//! | `live/NAME` | one of 10 pages on their own servers; objects, size and domains are published |
//! | `multipipe/small`, `multipipe/medium`, `multipipe/large` | the pages of MultiPipe: number, least, greatest and total size of objects are published |
//! | `multipipe/mixed-small`, `-medium`, `-large` | the same with objects of all kinds |
//! | `today/small`, `today/medium`, `today/large` | 15, 40 and 71 objects in the mix of the web of 2024, on 6 hosts |
//!
//! Sizes are log-normal around the median of their kind, and add up to the size of the page. The document is
//! parsed as it arrives: style sheets and the scripts of its head are discovered at a fifth of it, all other
//! objects at half of it, except fonts, which style sheets refer to, and objects that scripts fetch when they
//! run.

mod content;
mod draw;
mod multipipe;
mod tables;
mod tree;

use marline_http::page::Page;
use marline_link::Seed;

pub use self::content::{ContentError, Readable, readable};
use self::tables::{CLONED, IMAGES, LIVE, TODAY};

/// The number of objects of each kind, their total size, and the number of hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outline {
    name: &'static str,
    counts: Counts,
    /// Of all objects together.
    bytes: u64,
    hosts: u32,
}

/// Objects by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    html: u32,
    css: u32,
    js: u32,
    font: u32,
    image: u32,
    other: u32,
}

/// The page of this name, if there is one. Equal seeds give equal pages on every machine.
///
/// Paths are unique across hosts, so that one server can serve the whole page.
pub fn page(name: &str, seed: u64) -> Option<Page> {
    if let Some(page) = multipipe::page(name) {
        return Some(page);
    }
    let outline = outlines().find(|outline| outline.name == name)?;
    Some(tree::grow(&outline, Seed::new(seed).of(name)))
}

/// The names of all pages.
pub fn names() -> impl Iterator<Item = &'static str> {
    let outlines = outlines().map(|outline| outline.name);
    outlines.chain(multipipe::names())
}

fn outlines() -> impl Iterator<Item = Outline> {
    let cloned = CLONED.iter().map(tables::Cloned::outline);
    let live = LIVE.iter().map(tables::Live::outline);
    cloned
        .chain([IMAGES.outline()])
        .chain(live)
        .chain(TODAY.iter().map(tables::Live::outline))
}

#[cfg(test)]
mod tests;
