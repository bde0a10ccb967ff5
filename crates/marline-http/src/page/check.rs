//! Checks that a page is consistent, and prepares its objects for loading.

use std::collections::HashMap;

use http::{HeaderMap, Uri};

use super::findings::Found;
use super::model::{Page, PageObject};
use super::priority;
use crate::client::{ClientError, HttpVersion, Origin, ParsedUrl, parse_url};
use crate::limits;
use crate::pipes::ObjectKind;

/// The reason why a page cannot be loaded, and the object that causes it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// There are no objects.
    #[error("the page has no objects")]
    Empty,
    /// There are more than [`limits::MAX_PAGE_OBJECTS`].
    #[error("the page has {0} objects; {most} are allowed", most = limits::MAX_PAGE_OBJECTS)]
    TooMany(usize),
    /// Two objects have one name.
    #[error("two objects are named {id}")]
    SameId {
        /// The name.
        id: String,
    },
    /// Two objects have one URL.
    #[error("object {id} has the URL of {other}")]
    SameUrl {
        /// The second of them.
        id: String,
        /// The first.
        other: String,
    },
    /// No object is the document.
    #[error("every object is discovered by another: none is the page's document")]
    NoDocument,
    /// Two objects are the document.
    #[error("object {id} is discovered by none, but the page's document is {document}")]
    SecondDocument {
        /// The second of them.
        id: String,
        /// The first.
        document: String,
    },
    /// An object is discovered by one that does not exist.
    #[error("object {id} is discovered by {discoverer}, which is not on the page")]
    Unknown {
        /// The object.
        id: String,
        /// The name that does not exist.
        discoverer: String,
    },
    /// An object is discovered by itself, possibly through others.
    #[error(
        "object {id} can never be discovered: it is discovered by itself, possibly through others"
    )]
    Cycle {
        /// One object of the cycle.
        id: String,
    },
    /// A share is not between 0 and 1.
    #[error("object {id} is discovered at the share {share}, which is not between 0 and 1")]
    Share {
        /// The object.
        id: String,
        /// The share.
        share: f64,
    },
    /// An object is larger than [`limits::MAX_PAGE_OBJECT_BYTES`].
    #[error("object {id} has {size} bytes; {most} are allowed", most = limits::MAX_PAGE_OBJECT_BYTES)]
    Size {
        /// The object.
        id: String,
        /// Its size in bytes.
        size: u64,
    },
    /// The urgency is out of range.
    #[error("object {id} has the urgency {urgency}; the largest is 7")]
    Urgency {
        /// The object.
        id: String,
        /// Its urgency.
        urgency: u8,
    },
    /// Host and path are not a valid URL.
    #[error("object {id}: {cause}")]
    Url {
        /// The object.
        id: String,
        /// The error.
        cause: ClientError,
    },
}

/// A consistent page, with indices for names.
pub(super) struct Plan {
    /// In the order of the page.
    pub(super) objects: Vec<Planned>,
    /// The index of the document.
    pub(super) document: usize,
}

/// One object, with the data for its request.
pub(super) struct Planned {
    pub(super) origin: Origin,
    pub(super) uri: Uri,
    /// Bytes of content.
    pub(super) size: u64,
    pub(super) kind: ObjectKind,
    pub(super) urgency: u8,
    /// The priority of its request as header fields.
    pub(super) headers: HeaderMap,
    /// The index of the object that discovers it.
    pub(super) parent: Option<usize>,
    /// Objects that are discovered while it arrives, by share.
    pub(super) early: Vec<Found>,
    /// Objects that are discovered when it is done.
    pub(super) late: Vec<usize>,
}

impl Planned {
    /// Whether other objects are discovered in it.
    pub(super) fn is_critical(&self) -> bool {
        !(self.early.is_empty() && self.late.is_empty())
    }
}

impl Page {
    /// Checks that the page is consistent.
    ///
    /// # Errors
    /// The inconsistency, and the object with it.
    pub fn check(&self) -> Result<(), PageError> {
        Plan::new(self, HttpVersion::Http3).map(drop)
    }
}

impl Plan {
    pub(super) fn new(page: &Page, version: HttpVersion) -> Result<Self, PageError> {
        let objects = &page.objects;
        if objects.len() > limits::MAX_PAGE_OBJECTS {
            return Err(PageError::TooMany(objects.len()));
        }
        let places = indices(objects)?;
        let parents = parents(objects, &places)?;
        let document = document(objects, &parents)?;
        check_cycles(objects, &parents)?;

        let in_which: Vec<_> = parents.iter().map(|p| p.map(|p| p.object)).collect();
        let priorities = priority::of(objects, &in_which);
        let mut seen = HashMap::new();
        let mut planned = Vec::with_capacity(objects.len());
        for (place, (object, priority)) in objects.iter().zip(priorities).enumerate() {
            check_numbers(object)?;
            let ParsedUrl { origin, uri } = url(object, version)?;
            if let Some(other) = seen.insert(uri.clone(), &object.id) {
                let (id, other) = (object.id.clone(), other.clone());
                return Err(PageError::SameUrl { id, other });
            }
            planned.push(Planned {
                origin,
                uri,
                size: object.size,
                kind: ObjectKind::of_media_type(object.kind.content_type()),
                urgency: priority.urgency,
                headers: priority::headers(priority),
                parent: in_which[place],
                early: Vec::new(),
                late: Vec::new(),
            });
        }
        for (child, parent) in parents.iter().enumerate() {
            match *parent {
                Some(Parent { object, share }) if share < 1.0 => {
                    let found = Found {
                        share,
                        object: child,
                    };
                    planned[object].early.push(found);
                }
                Some(parent) => planned[parent.object].late.push(child),
                None => {}
            }
        }
        for object in &mut planned {
            // The sort is stable: objects discovered at the same share are requested in the page's order.
            object.early.sort_by(|a, b| a.share.total_cmp(&b.share));
        }
        Ok(Self {
            objects: planned,
            document,
        })
    }
}

fn indices(objects: &[PageObject]) -> Result<HashMap<&str, usize>, PageError> {
    let mut places = HashMap::with_capacity(objects.len());
    for (place, object) in objects.iter().enumerate() {
        if places.insert(object.id.as_str(), place).is_some() {
            let id = object.id.clone();
            return Err(PageError::SameId { id });
        }
    }
    Ok(places)
}

/// The place where an object is discovered.
#[derive(Clone, Copy)]
struct Parent {
    /// Its index in the page.
    object: usize,
    /// The share of it that has to arrive first.
    share: f64,
}

/// The object that discovers each one.
fn parents(
    objects: &[PageObject],
    places: &HashMap<&str, usize>,
) -> Result<Vec<Option<Parent>>, PageError> {
    let parent = |object: &PageObject| {
        let Some(discovery) = &object.discovered_by else {
            return Ok(None);
        };
        let (id, share) = (object.id.clone(), discovery.share);
        if !(0.0..=1.0).contains(&share) {
            return Err(PageError::Share { id, share });
        }
        match places.get(discovery.object.as_str()) {
            Some(&object) => Ok(Some(Parent { object, share })),
            None => Err(PageError::Unknown {
                id,
                discoverer: discovery.object.clone(),
            }),
        }
    };
    objects.iter().map(parent).collect()
}

fn document(objects: &[PageObject], parents: &[Option<Parent>]) -> Result<usize, PageError> {
    let mut documents = (0..objects.len()).filter(|place| parents[*place].is_none());
    match (documents.next(), documents.next()) {
        (Some(document), None) => Ok(document),
        (Some(document), Some(second)) => Err(PageError::SecondDocument {
            id: objects[second].id.clone(),
            document: objects[document].id.clone(),
        }),
        (None, _) if objects.is_empty() => Err(PageError::Empty),
        (None, _) => Err(PageError::NoDocument),
    }
}

/// Checks that following the discoverers of each object ends at the document.
fn check_cycles(objects: &[PageObject], parents: &[Option<Parent>]) -> Result<(), PageError> {
    /// The object from which each one was first reached; each is passed once.
    const NEVER: usize = usize::MAX;
    let mut met = vec![NEVER; objects.len()];
    for start in 0..objects.len() {
        let mut place = start;
        while met[place] == NEVER {
            met[place] = start;
            match parents[place] {
                Some(parent) => place = parent.object,
                None => break,
            }
        }
        if met[place] == start && parents[place].is_some() {
            let id = objects[place].id.clone();
            return Err(PageError::Cycle { id });
        }
    }
    Ok(())
}

fn check_numbers(object: &PageObject) -> Result<(), PageError> {
    let id = || object.id.clone();
    if object.size > limits::MAX_PAGE_OBJECT_BYTES {
        let size = object.size;
        return Err(PageError::Size { id: id(), size });
    }
    match object.urgency {
        Some(urgency @ 8..) => Err(PageError::Urgency { id: id(), urgency }),
        _ => Ok(()),
    }
}

fn url(object: &PageObject, version: HttpVersion) -> Result<ParsedUrl, PageError> {
    let scheme = match version {
        HttpVersion::Http11Cleartext => "http",
        _ => "https",
    };
    let url = format!("{scheme}://{}{}", object.host, object.path);
    let wrong = |cause| PageError::Url {
        id: object.id.clone(),
        cause,
    };
    if !object.path.starts_with('/') || object.host.contains(['/', '?', '#']) {
        let reason = "a host has no slash, and a path begins with one";
        return Err(wrong(ClientError::Url { url, reason }));
    }
    parse_url(&url, version).map_err(wrong)
}
