//! The pages of MultiPipe (Choudhary et al., table III), of which the number of objects, the least, the greatest and the total size are
//! published.
//!
//! Sizes grow from the least to the greatest, as steeply as the total requires. The document is the smallest object. Of what kind
//! the others are, the paper does not say of its pages: they are images that are found at half of it; on the pages whose names have
//! `mixed`, they are of all kinds in turn, with style sheets and scripts in the head of the document.

use std::time::Duration;

use marline_http::page::{Discovery, Kind, Page, PageObject};

/// A page of table III.
struct Row {
    name: &'static str,
    /// The name of the page with the same sizes and objects of all kinds.
    mixed: &'static str,
    least: u64,
    greatest: u64,
    total: u64,
    objects: u32,
}

#[rustfmt::skip]
const ROWS: [Row; 3] = [
    Row { name: "multipipe/small", mixed: "multipipe/mixed-small", least: 7_300, greatest: 197_000, total: 580_000, objects: 8 },
    Row { name: "multipipe/medium", mixed: "multipipe/mixed-medium", least: 7_300, greatest: 1_700_000, total: 3_700_000, objects: 13 },
    Row { name: "multipipe/large", mixed: "multipipe/mixed-large", least: 7_300, greatest: 5_700_000, total: 16_900_000, objects: 22 },
];

/// The kinds of the objects after the document, in turn, with the names of their objects.
type Kinds = &'static [(Kind, &'static str)];

const IMAGES: Kinds = &[(Kind::Image, "image")];
const MIXED: Kinds = &[
    (Kind::Css, "css"),
    (Kind::Js, "js"),
    (Kind::Font, "font"),
    (Kind::Image, "image"),
    (Kind::Other, "other"),
];

/// The share of the document at which the objects of its head are found.
const HEAD: f64 = 0.2;

/// The share of the document at which all others are found.
const BODY: f64 = 0.5;

/// The page of this name.
pub(super) fn page(name: &str) -> Option<Page> {
    let row = ROWS
        .iter()
        .find(|row| row.name == name || row.mixed == name)?;
    let kinds = if row.mixed == name { MIXED } else { IMAGES };
    Some(row.page(kinds))
}

/// The names of all of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().flat_map(|row| [row.name, row.mixed])
}

impl Row {
    /// Its page, with objects of these kinds.
    fn page(&self, kinds: Kinds) -> Page {
        let mut sizes = self.sizes().into_iter();
        let document = sizes
            .next()
            .map(|size| object("html0".to_owned(), Kind::Html, size));
        let others = sizes.enumerate().map(|(place, size)| {
            let (kind, name) = kinds[place % kinds.len()];
            object(format!("{name}{}", place / kinds.len()), kind, size)
        });
        Page {
            objects: document.into_iter().chain(others).collect(),
        }
    }

    /// `least * (greatest / least) ^ (t ^ steepness)` for `t` from 0 to 1, which add up to the total.
    fn sizes(&self) -> Vec<u64> {
        let ratio = self.greatest as f64 / self.least as f64;
        let sizes = |steepness: f64| {
            let last = f64::from(self.objects - 1);
            let size = move |place: u32| {
                let t = (f64::from(place) / last).powf(steepness);
                (self.least as f64 * ratio.powf(t)).round() as u64
            };
            (0..self.objects).map(size).collect::<Vec<_>>()
        };
        // The steeper, the smaller the sum.
        let (mut low, mut high) = (0.05, 20.0);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            match sizes(middle).iter().sum::<u64>() > self.total {
                true => low = middle,
                false => high = middle,
            }
        }
        let mut sizes = sizes(high);
        let rest = self.total.saturating_sub(sizes.iter().sum());
        // The remainder of rounding goes to one in the middle.
        sizes[self.objects as usize / 2] += rest;
        sizes
    }
}

fn object(id: String, kind: Kind, size: u64) -> PageObject {
    let blocking = matches!(kind, Kind::Css | Kind::Js);
    let share = if blocking { HEAD } else { BODY };
    PageObject {
        host: "www.page.test".to_owned(),
        path: format!("/{id}"),
        id,
        kind,
        size,
        discovered_by: (kind != Kind::Html).then(|| Discovery {
            object: "html0".to_owned(),
            share,
        }),
        parse: Duration::ZERO,
        think: Duration::ZERO,
        blocking,
        urgency: None,
        incremental: None,
    }
}
