//! Content in which a browser finds the objects of a page.
//!
//! | in | an object is referred to by | where |
//! | --- | --- | --- |
//! | a document | a tag: `link`, `script`, `img`, `iframe`; data as a preload | at its share of the document |
//! | a style sheet | `@import`, `@font-face`, a background | its rules are at the end |
//! | a script | what it makes when it runs: elements, `fetch` | it runs for its parsing time first |
//!
//! The rest of an object is blank. An image has one pixel. Fonts and data have the generated pattern. An object that is too
//! small for its references grows, and the largest object shrinks by as much.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use marline_http::page::{Kind, Page, PageObject};

/// A page, and the content of its objects.
#[derive(Clone, Debug)]
pub struct Readable {
    /// The page, of which some objects have another size.
    pub page: Page,
    /// The content of the objects that a browser has to understand, by path.
    pub contents: BTreeMap<String, Bytes>,
}

/// Why a browser cannot find all objects of a page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContentError {
    /// The references of an object are larger than the object, and no other is large enough to shrink.
    #[error(
        "object {id} has {size} bytes and needs {needed} for its references, which no other object has to spare"
    )]
    TooSmall {
        /// The object.
        id: String,
        /// Its size in bytes.
        size: u64,
        /// Bytes that it needs.
        needed: u64,
    },
    /// An object is discovered in one that cannot refer to it.
    #[error("a browser finds no object in {parent}, where {id} should be discovered")]
    NoReference {
        /// The object.
        id: String,
        /// The one in which it is discovered.
        parent: String,
    },
}

/// The smallest size of an object that shrinks, in bytes.
const SMALLEST: u64 = 1000;

/// Scripts that run for less do not wait: the browser's clock is too coarse.
const SHORTEST_RUN: Duration = Duration::from_micros(500);

/// The smallest image: lossless WebP of one pixel.
const PIXEL: [u8; 34] = [
    b'R', b'I', b'F', b'F', 26, 0, 0, 0, b'W', b'E', b'B', b'P', b'V', b'P', b'8', b'L', 13, 0, 0,
    0, 47, 0, 0, 0, 16, 7, 16, 17, 17, 136, 136, 254, 7, 0,
];

/// The header of a chunk of RIFF: its name and its size.
const CHUNK_HEADER: usize = 8;

/// Writes the content of `page`, whose URLs begin with `scheme`.
///
/// # Errors
/// The page is too small, or has an object in which a browser finds no other.
pub fn readable(mut page: Page, scheme: &str) -> Result<Readable, ContentError> {
    // Each try makes one object large enough; the one that shrinks for it may have to grow again.
    for _ in 0..2 * page.objects.len() {
        match contents(&page, scheme) {
            Ok(contents) => return Ok(Readable { page, contents }),
            Err(Unwritten::TooSmall { place, needed }) => grow(&mut page, place, needed)?,
            Err(Unwritten::NoReference(child)) => return Err(no_reference(&page, child)),
        }
    }
    match contents(&page, scheme) {
        Ok(contents) => Ok(Readable { page, contents }),
        Err(Unwritten::TooSmall { place, needed }) => Err(too_small(&page, place, needed)),
        Err(Unwritten::NoReference(child)) => Err(no_reference(&page, child)),
    }
}

/// Why an object has no content; objects are named by their index.
enum Unwritten {
    TooSmall { place: usize, needed: u64 },
    NoReference(usize),
}

fn too_small(page: &Page, place: usize, needed: u64) -> ContentError {
    let object = &page.objects[place];
    ContentError::TooSmall {
        id: object.id.clone(),
        size: object.size,
        needed,
    }
}

fn no_reference(page: &Page, child: usize) -> ContentError {
    let child = &page.objects[child];
    let parent = child.discovered_by.as_ref();
    ContentError::NoReference {
        id: child.id.clone(),
        parent: parent.map_or_else(String::new, |parent| parent.object.clone()),
    }
}

/// Grows the object at `place` to `needed` bytes, at the cost of the largest other one.
fn grow(page: &mut Page, place: usize, needed: u64) -> Result<(), ContentError> {
    let more = needed.saturating_sub(page.objects[place].size);
    let others = (0..page.objects.len()).filter(|&other| other != place);
    let largest = others.max_by_key(|&other| page.objects[other].size);
    let largest = largest.filter(|&largest| page.objects[largest].size >= more + SMALLEST);
    let largest = largest.ok_or_else(|| too_small(page, place, needed))?;
    page.objects[largest].size -= more;
    page.objects[place].size += more;
    Ok(())
}

fn contents(page: &Page, scheme: &str) -> Result<BTreeMap<String, Bytes>, Unwritten> {
    let places = page.objects.iter().enumerate();
    let places: BTreeMap<_, _> = places.map(|(place, o)| (o.id.as_str(), place)).collect();
    let mut writer = Writer {
        page,
        scheme,
        children: vec![Vec::new(); page.objects.len()],
        parents: vec![None; page.objects.len()],
    };
    for (place, object) in page.objects.iter().enumerate() {
        let parent = object.discovered_by.as_ref();
        let parent = parent.and_then(|parent| places.get(parent.object.as_str()));
        if let Some(&parent) = parent {
            writer.children[parent].push(place);
            writer.parents[place] = Some(parent);
        }
    }
    let mut contents = BTreeMap::new();
    for (place, object) in page.objects.iter().enumerate() {
        let content = match object.kind {
            Kind::Html => Some(writer.document(place)?),
            Kind::Css => Some(writer.style_sheet(place)?),
            Kind::Js => Some(writer.script(place)?),
            Kind::Image | Kind::Font | Kind::Other => {
                if let Some(&child) = writer.children[place].first() {
                    return Err(Unwritten::NoReference(child));
                }
                image(object.size).filter(|_| object.kind == Kind::Image)
            }
        };
        if let Some(content) = content {
            let path = object.path.split('?').next().unwrap_or_default();
            contents.insert(path.to_owned(), content.into());
        }
    }
    Ok(contents)
}

/// An image of `size` bytes, if such a small one exists.
fn image(size: u64) -> Option<Vec<u8>> {
    let size = usize::try_from(size).ok()?;
    let blank = size.checked_sub(PIXEL.len() + CHUNK_HEADER)?;
    let mut content = PIXEL.to_vec();
    // A chunk of an unknown name is skipped. Its size is even in the file.
    let chunk = blank & !1;
    content.extend_from_slice(b"skip");
    content.extend_from_slice(&u32::try_from(chunk).ok()?.to_le_bytes());
    let riff = u32::try_from(PIXEL.len() + chunk).ok()?;
    content[4..8].copy_from_slice(&riff.to_le_bytes());
    content.resize(size, b' ');
    Some(content)
}

struct Writer<'a> {
    page: &'a Page,
    scheme: &'a str,
    /// By the index of an object: those that are discovered in it.
    children: Vec<Vec<usize>>,
    parents: Vec<Option<usize>>,
}

impl Writer<'_> {
    /// The URL of `object` as `from` writes it.
    fn url(&self, object: &PageObject, from: &PageObject) -> String {
        match object.host == from.host {
            true => object.path.clone(),
            false => format!("{}://{}{}", self.scheme, object.host, object.path),
        }
    }

    /// A document. Its text is painted as soon as nothing blocks rendering.
    fn document(&self, place: usize) -> Result<Vec<u8>, Unwritten> {
        let object = &self.page.objects[place];
        let mut content = Content::new(
            object,
            "<!doctype html><meta charset=utf-8><link rel=icon href=data:,><title>page</title>",
        );
        let mut children = self.children[place].clone();
        let share = |child: usize| {
            let discovery = self.page.objects[child].discovered_by.as_ref();
            discovery.map_or(0.0, |discovery| discovery.share)
        };
        let is_body = |child: usize| !self.page.objects[child].blocking;
        // References that the parser finds come before scripts, at which it stops.
        let rank = |child: usize| match self.page.objects[child].kind {
            Kind::Html => 0,
            Kind::Js => 2,
            _ => 1,
        };
        children.sort_by(|&a, &b| {
            let by_place = is_body(a).cmp(&is_body(b)).then(rank(a).cmp(&rank(b)));
            share(a).total_cmp(&share(b)).then(by_place)
        });
        let mut text = Some(format!("<p>page{}", self.uses(place)));
        for group in children.chunk_by(|&a, &b| share(a) == share(b) && is_body(a) == is_body(b)) {
            let first = group[0];
            let mut tags = String::new();
            if is_body(first)
                && let Some(text) = text.take()
            {
                content.push(&text);
            }
            for &child in group {
                tags.push_str(&self.tag(&self.page.objects[child], object));
            }
            content.push_at(share(first), &tags);
        }
        if let Some(text) = text {
            content.push(&text);
        }
        let needed = content.bytes.len() as u64;
        // References that are found at half of the document take half of it.
        content.finish().ok_or(Unwritten::TooSmall {
            place,
            needed: 2 * needed,
        })
    }

    /// Elements that use the fonts and backgrounds of the style sheets of the document at `place`.
    fn uses(&self, place: usize) -> String {
        let mut uses = String::new();
        for (child, object) in self.page.objects.iter().enumerate() {
            let Some(sheet) = self.parents[child] else {
                continue;
            };
            if self.page.objects[sheet].kind != Kind::Css || self.document_of(sheet) != Some(place)
            {
                continue;
            }
            match object.kind {
                Kind::Font => uses.push_str(&format!("<b style=font-family:f{child}>x</b>")),
                Kind::Image => uses.push_str(&format!("<b class=i{child}>x</b>")),
                _ => {}
            }
        }
        uses
    }

    /// The document in which the object at `place` is, directly or through others.
    fn document_of(&self, place: usize) -> Option<usize> {
        let mut parent = self.parents[place];
        // No chain of parents is longer than the page.
        for _ in 0..self.page.objects.len() {
            match parent {
                Some(at) if self.page.objects[at].kind != Kind::Html => parent = self.parents[at],
                found => return found,
            }
        }
        None
    }

    /// The tag by which the document `from` refers to `object`.
    fn tag(&self, object: &PageObject, from: &PageObject) -> String {
        let url = attribute(&self.url(object, from));
        match object.kind {
            Kind::Html => format!("<iframe src={url}></iframe>"),
            Kind::Css => format!("<link rel=stylesheet href={url}>"),
            Kind::Js => format!("<script src={url}></script>"),
            Kind::Font => format!("<link rel=preload as=font crossorigin href={url}>"),
            Kind::Image => format!("<img src={url}>"),
            Kind::Other => format!("<link rel=preload as=fetch href={url}>"),
        }
    }

    fn style_sheet(&self, place: usize) -> Result<Vec<u8>, Unwritten> {
        let object = &self.page.objects[place];
        let mut rules = String::new();
        for &child in &self.children[place] {
            let url = quoted(&self.url(&self.page.objects[child], object));
            match self.page.objects[child].kind {
                // Imports come before rules.
                Kind::Css => rules.insert_str(0, &format!("@import {url};")),
                Kind::Font => rules.push_str(&format!(
                    "@font-face{{font-family:f{child};src:url({url})}}"
                )),
                Kind::Image => rules.push_str(&format!(".i{child}{{background:url({url})}}")),
                _ => return Err(Unwritten::NoReference(child)),
            }
        }
        Content::new(object, "").finish_with(place, &rules)
    }

    fn script(&self, place: usize) -> Result<Vec<u8>, Unwritten> {
        let object = &self.page.objects[place];
        let mut code = String::new();
        if object.parse >= SHORTEST_RUN {
            let milliseconds = object.parse.as_secs_f64() * 1e3;
            code.push_str(&format!(
                "for(let t=performance.now()+{milliseconds:.2};performance.now()<t;);"
            ));
        }
        for &child in &self.children[place] {
            let url = quoted(&self.url(&self.page.objects[child], object));
            let element = |name: &str, key: &str, more: &str| {
                format!(
                    "document.head.append(Object.assign(document.createElement('{name}'),{{{key}:{url}{more}}}));"
                )
            };
            code.push_str(&match self.page.objects[child].kind {
                Kind::Html => element("iframe", "src", ""),
                Kind::Css => element("link", "href", ",rel:'stylesheet'"),
                Kind::Js => element("script", "src", ""),
                Kind::Font => format!("new FontFace('f{child}','url('+{url}+')').load();"),
                Kind::Image => format!("new Image().src={url};"),
                // Unread content would stop arriving.
                Kind::Other => {
                    format!("fetch({url},{{mode:'no-cors'}}).then(r=>r.arrayBuffer());")
                }
            });
        }
        Content::new(object, "").finish_with(place, &code)
    }
}

/// Content that is filled with blanks up to its size.
struct Content {
    bytes: Vec<u8>,
    size: usize,
}

impl Content {
    fn new(object: &PageObject, start: &str) -> Self {
        Self {
            bytes: start.as_bytes().to_vec(),
            size: usize::try_from(object.size).unwrap_or(usize::MAX),
        }
    }

    fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Adds `text` so that it ends at `share` of the size, or as soon after that as possible.
    fn push_at(&mut self, share: f64, text: &str) {
        let end = (self.size as f64 * share) as usize;
        let begin = end.min(self.size).saturating_sub(text.len());
        if begin > self.bytes.len() {
            self.bytes.resize(begin, b' ');
        }
        self.push(text);
    }

    /// `None` if there is more than fits.
    fn finish(mut self) -> Option<Vec<u8>> {
        if self.bytes.len() > self.size {
            return None;
        }
        self.bytes.resize(self.size, b' ');
        Some(self.bytes)
    }

    /// Ends with `text`, in the object at `place`.
    fn finish_with(mut self, place: usize, text: &str) -> Result<Vec<u8>, Unwritten> {
        self.push_at(1.0, text);
        let needed = self.bytes.len() as u64;
        self.finish().ok_or(Unwritten::TooSmall { place, needed })
    }
}

/// A value of an attribute of HTML, in quotes where it needs them.
fn attribute(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-:".contains(c);
    match value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("\"{}\"", value.replace('&', "&amp;").replace('"', "&quot;")),
    }
}

/// A string of CSS and of JavaScript.
fn quoted(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests;
