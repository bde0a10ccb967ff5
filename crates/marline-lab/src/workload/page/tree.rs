//! Generates a page from its outline.

use std::collections::VecDeque;
use std::time::Duration;

use marline_http::page::{Discovery, Kind, Page, PageObject};
use marline_link::Seed;

use super::draw::{below, log_normal, unit};
use super::{Counts, Outline};

/// Standard deviation of the logarithm of sizes.
const SIGMA: f64 = 1.2;

/// The smallest object.
const MIN_BYTES: u64 = 100;

/// The share of the document at which objects of its head are discovered.
const HEAD: f64 = 0.2;

/// The share of the document at which other objects are discovered.
const BODY: f64 = 0.5;

/// One in this many scripts is in the head.
const HEAD_SCRIPTS: usize = 3;

/// The share of scripts that fetch one or two objects.
const FETCHING: f64 = 0.3;

/// The share of objects on the document's own host, if there are several hosts.
const OWN_HOST: f64 = 0.6;

/// The processing time of the document's server, and of other servers.
const THINK: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(2)];

/// The page's own host, in its own domain.
const HOST: &str = "www.page.test";

/// Draws the properties that the outline does not specify.
pub(super) fn grow(outline: &Outline, seed: Seed) -> Page {
    let kinds = kinds(outline.counts);
    let sizes = sizes(&kinds, outline.bytes, seed.of("sizes"));
    let hosts = hosts(kinds.len(), outline.hosts, seed.of("hosts"));
    let parents = parents(&kinds, seed.of("tree"));
    let ids = ids(&kinds);
    let objects = (0..kinds.len()).map(|place| {
        let (kind, size) = (kinds[place], sizes[place]);
        let parent = parents[place];
        let in_head = parent.is_some_and(|parent| parent.share == HEAD);
        PageObject {
            id: ids[place].clone(),
            host: hosts[place].clone(),
            path: format!("/{}", ids[place]),
            kind,
            size,
            discovered_by: parent.map(|parent| Discovery {
                object: ids[parent.index].clone(),
                share: parent.share,
            }),
            parse: parse(kind, size),
            think: THINK[usize::from(place > 0)],
            blocking: in_head && matches!(kind, Kind::Css | Kind::Js),
            urgency: None,
            incremental: None,
        }
    });
    Page {
        objects: objects.collect(),
    }
}

/// The kinds of all objects: the document, then those that it refers to.
fn kinds(counts: Counts) -> Vec<Kind> {
    let Counts {
        html,
        css,
        js,
        font,
        image,
        other,
    } = counts;
    let runs = [
        (Kind::Html, html),
        (Kind::Css, css),
        (Kind::Js, js),
        (Kind::Font, font),
        (Kind::Image, image),
        (Kind::Other, other),
    ];
    let kinds = runs.map(|(kind, count)| std::iter::repeat_n(kind, count as usize));
    kinds.into_iter().flatten().collect()
}

fn ids(kinds: &[Kind]) -> Vec<String> {
    let id = |place: usize| {
        let kind = kinds[place];
        let name = match kind {
            Kind::Html => "html",
            Kind::Css => "css",
            Kind::Js => "js",
            Kind::Font => "font",
            Kind::Image => "image",
            Kind::Other => "other",
        };
        let number = kinds[..place].iter().filter(|k| **k == kind).count();
        format!("{name}{number}")
    };
    (0..kinds.len()).map(id).collect()
}

/// Log-normal around the medians of the kinds, scaled to add up to `total`.
fn sizes(kinds: &[Kind], total: u64, seed: Seed) -> Vec<u64> {
    let mut rng = seed.rng();
    let drawn: Vec<f64> = kinds
        .iter()
        .map(|kind| median_bytes(*kind) * log_normal(&mut rng, SIGMA))
        .collect();
    let scale = total as f64 / drawn.iter().sum::<f64>();
    let mut sizes: Vec<_> = drawn
        .iter()
        .map(|size| ((size * scale) as u64).max(MIN_BYTES))
        .collect();
    // The difference that rounding and the minimum size have caused.
    let sum: u64 = sizes.iter().sum();
    if let Some(largest) = sizes.iter_mut().max() {
        *largest = (*largest + total).saturating_sub(sum).max(MIN_BYTES);
    }
    sizes
}

/// Medians of the HTTP Archive in 2024; that of data is estimated.
fn median_bytes(kind: Kind) -> f64 {
    match kind {
        Kind::Html => 18_000.0,
        Kind::Css => 8_000.0,
        Kind::Js | Kind::Image => 20_000.0,
        Kind::Font => 25_000.0,
        Kind::Other => 5_000.0,
    }
}

/// A millisecond for 10 kB of a document, for 5 kB of a script.
fn parse(kind: Kind, size: u64) -> Duration {
    match kind {
        Kind::Html => Duration::from_nanos(size * 100),
        Kind::Js => Duration::from_nanos(size * 200),
        _ => Duration::ZERO,
    }
}

/// The host of each object. Each host has at least one object.
fn hosts(objects: usize, hosts: u32, seed: Seed) -> Vec<String> {
    let mut rng = seed.rng();
    let others = (hosts as usize).clamp(1, objects) - 1;
    let free = objects - others;
    let own = OWN_HOST * objects as f64 / free as f64;
    let host = |place: usize| {
        let (chance, other) = (unit(&mut rng), below(&mut rng, others.max(1)));
        match place.checked_sub(free) {
            Some(other) => format!("host{}.page.test", 1 + other),
            None if place == 0 || others == 0 || chance < own => HOST.to_owned(),
            None => format!("host{}.page.test", 1 + other),
        }
    };
    (0..objects).map(host).collect()
}

/// The place where an object is discovered.
#[derive(Clone, Copy)]
struct Parent {
    /// The index of the object that refers to it.
    index: usize,
    /// The share of that object that has to arrive first.
    share: f64,
}

/// The object in which each one is discovered.
fn parents(kinds: &[Kind], seed: Seed) -> Vec<Option<Parent>> {
    let mut rng = seed.rng();
    let of_kind = |kind: Kind| -> Vec<usize> {
        (0..kinds.len())
            .filter(|place| kinds[*place] == kind)
            .collect()
    };
    let (sheets, scripts) = (of_kind(Kind::Css), of_kind(Kind::Js));
    let in_head = scripts.len().div_ceil(HEAD_SCRIPTS);
    let at = |index, share| Some(Parent { index, share });
    let mut parents: Vec<_> = kinds.iter().map(|_| at(0, BODY)).collect();
    parents[0] = None;
    for sheet in &sheets {
        parents[*sheet] = at(0, HEAD);
    }
    for script in &scripts[..in_head] {
        parents[*script] = at(0, HEAD);
    }
    if !sheets.is_empty() {
        for font in of_kind(Kind::Font) {
            parents[font] = at(sheets[below(&mut rng, sheets.len())], 1.0);
        }
    }
    // Scripts fetch data, then the last images, and never each other, so that there are no cycles.
    let mut fetched: VecDeque<_> = of_kind(Kind::Other).into();
    fetched.extend(of_kind(Kind::Image).into_iter().rev());
    for script in scripts {
        let fetches = unit(&mut rng) < FETCHING;
        let count = 1 + below(&mut rng, 2);
        if fetches {
            for object in fetched.drain(..count.min(fetched.len())) {
                parents[object] = at(script, 1.0);
            }
        }
    }
    parents
}
