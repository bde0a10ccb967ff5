//! The pages of MultiPipe (Choudhary et al., table III), of which the number of objects, the least, the greatest and the total size are
//! published.
//!
//! Sizes grow from the least to the greatest, as steeply as the total requires. The document is the smallest object;
//! the others are images that are found at half of it, as the paper does not mention scripts.

use std::time::Duration;

use marline_http::page::{Discovery, Kind, Page, PageObject};

/// A page of table III.
struct Row {
    name: &'static str,
    least: u64,
    greatest: u64,
    total: u64,
    objects: u32,
}

#[rustfmt::skip]
const ROWS: [Row; 3] = [
    Row { name: "multipipe/small", least: 7_300, greatest: 197_000, total: 580_000, objects: 8 },
    Row { name: "multipipe/medium", least: 7_300, greatest: 1_700_000, total: 3_700_000, objects: 13 },
    Row { name: "multipipe/large", least: 7_300, greatest: 5_700_000, total: 16_900_000, objects: 22 },
];

/// The share of the document at which the other objects are found.
const FOUND: f64 = 0.5;

/// The page of this name.
pub(super) fn page(name: &str) -> Option<Page> {
    let row = ROWS.iter().find(|row| row.name == name)?;
    let objects = row.sizes().into_iter().enumerate().map(|(place, size)| {
        let is_document = place == 0;
        let id = match is_document {
            true => "html0".to_owned(),
            false => format!("image{}", place - 1),
        };
        PageObject {
            host: "www.page.test".to_owned(),
            path: format!("/{id}"),
            id,
            kind: if is_document { Kind::Html } else { Kind::Image },
            size,
            discovered_by: (!is_document).then(|| Discovery {
                object: "html0".to_owned(),
                share: FOUND,
            }),
            parse: Duration::ZERO,
            think: Duration::ZERO,
            blocking: false,
            urgency: None,
            incremental: None,
        }
    });
    Some(Page {
        objects: objects.collect(),
    })
}

/// The names of all of them.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.name)
}

impl Row {
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
