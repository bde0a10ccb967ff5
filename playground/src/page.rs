//! Pages, and files as pages of one object.

use marline_h3::Priority;
use serde::Deserialize;

use crate::scenario::Content;

/// The page that the laboratory loads, too.
const FORTY: &str = include_str!("../../experiments/web/forty.json");

/// An object of a page.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Object {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) size: u64,
    id: String,
    #[serde(default)]
    discovered_by: Option<Discovery>,
    #[serde(default)]
    blocking: bool,
}

/// Where an object is found.
#[derive(Clone, Debug, Deserialize)]
struct Discovery {
    /// The object that names it.
    object: String,
    /// The share of that object's bytes that must have arrived.
    share: f64,
}

#[derive(Deserialize)]
struct Page {
    objects: Vec<Object>,
}

impl Object {
    /// The priority of its request (RFC 9218): the document and what blocks it first, images as they come.
    pub(crate) fn priority(&self) -> Priority {
        let urgency = match (self.kind.as_str(), self.blocking) {
            ("html", _) | ("css", true) => 0,
            ("js", true) => 1,
            _ => 3,
        };
        Priority {
            urgency,
            incremental: matches!(self.kind.as_str(), "html" | "image"),
        }
    }

    /// The number of bytes of `object` after which it names this one; `None` if it does not.
    pub(crate) fn found_after(&self, object: &Self) -> Option<u64> {
        let found = self.discovered_by.as_ref()?;
        (found.object == object.id).then_some((object.size as f64 * found.share) as u64)
    }

    /// Whether it is requested at once.
    pub(crate) const fn is_first(&self) -> bool {
        self.discovered_by.is_none()
    }
}

/// The objects of `content`. A file is cut into as many ranges as there are connections, as the client of marline cuts it;
/// here, each range is an object of its own.
pub(crate) fn objects(
    content: Content,
    connections: usize,
) -> Result<Vec<Object>, serde_json::Error> {
    match content {
        Content::Page => serde_json::from_str::<Page>(FORTY).map(|page| page.objects),
        Content::File { bytes } => {
            let parts = connections as u64;
            let part = |number: u64| Object {
                path: format!("/file/{number}"),
                kind: "file".to_owned(),
                size: bytes * (number + 1) / parts - bytes * number / parts,
                id: number.to_string(),
                discovered_by: None,
                blocking: false,
            };
            Ok((0..parts).map(part).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_but_the_document_is_found_in_another() {
        let objects = objects(Content::Page, 1).unwrap();
        assert_eq!(objects.len(), 40);
        for object in &objects {
            let found = objects.iter().filter_map(|other| object.found_after(other));
            assert_eq!(
                found.count(),
                usize::from(!object.is_first()),
                "{}",
                object.path
            );
        }
    }

    #[test]
    fn ranges_of_a_file_add_up_to_it() {
        for connections in 1..=4 {
            let objects = objects(Content::File { bytes: 1_000_001 }, connections).unwrap();
            assert_eq!(objects.len(), connections);
            assert_eq!(
                objects.iter().map(|object| object.size).sum::<u64>(),
                1_000_001
            );
        }
    }
}
