//! The description of a page.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::server::GeneratedObject;

/// A web page. Reports have its objects in the same order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// The objects. Exactly one has no [`discovered_by`](PageObject::discovered_by): the document.
    pub objects: Vec<PageObject>,
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageObject {
    /// Its name among the page's objects.
    pub id: String,
    /// Its host, with a port if that is not the default.
    pub host: String,
    /// Its path, with an optional query.
    pub path: String,
    /// Its kind.
    pub kind: Kind,
    /// Bytes of content.
    pub size: u64,
    /// The place where it is discovered; `None` for the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovered_by: Option<Discovery>,
    /// The time to parse or run all of it. Objects that are discovered at a share of its bytes are delayed by
    /// that share of this time.
    #[serde(default, rename = "parse_s", with = "seconds")]
    pub parse: Duration,
    /// The time from the request to the response of its server.
    #[serde(default, rename = "think_s", with = "seconds")]
    pub think: Duration,
    /// Whether it blocks rendering until it is done.
    #[serde(default)]
    pub blocking: bool,
    /// Its urgency (RFC 9218 section 4.1); by default that of Chrome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgency: Option<u8>,
    /// Whether it is incremental (RFC 9218 section 4.2); by default as in Chrome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incremental: Option<bool>,
}

/// The place where an object is discovered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// The name of the other object.
    pub object: String,
    /// The share of that object that must have arrived, from 0 (the header of its response) to 1 (all of it).
    pub share: f64,
}

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A document, or one inside another.
    Html,
    /// A style sheet.
    Css,
    /// A script.
    Js,
    /// A font.
    Font,
    /// An image.
    Image,
    /// Data that scripts fetch.
    Other,
}

impl Kind {
    /// The usual media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Html => "text/html",
            Self::Css => "text/css",
            Self::Js => "text/javascript",
            Self::Font => "font/woff2",
            Self::Image => "image/webp",
            Self::Other => "application/json",
        }
    }
}

impl Page {
    /// The objects of `host` for a [`generated`](crate::server::generated) site, by path.
    pub fn generated(&self, host: &str) -> BTreeMap<String, GeneratedObject> {
        let objects = self.objects.iter().filter(|object| object.host == host);
        let objects = objects.map(|object| {
            // Generated sites ignore queries.
            let path = object.path.split('?').next().unwrap_or_default();
            let generated = GeneratedObject {
                size: object.size,
                content_type: HeaderValue::from_static(object.kind.content_type()),
                think: object.think,
                content: None,
            };
            (path.to_owned(), generated)
        });
        objects.collect()
    }
}

/// Durations as seconds.
mod seconds {
    use std::time::Duration;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(value: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(value.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(from)?;
        Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
    }
}
