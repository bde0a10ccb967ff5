//! What a page is made of.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::server::GeneratedObject;

/// A web page. Objects stand in the order in which they are named in reports.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// One of them is discovered by none: the document itself.
    pub objects: Vec<PageObject>,
}

/// One object of a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageObject {
    /// Its name among the page's objects.
    pub id: String,
    /// Where it is: a host's name, with a port if that is not the usual one.
    pub host: String,
    /// Its path at the host, with a query perhaps.
    pub path: String,
    /// What it is.
    pub kind: Kind,
    /// Bytes of content.
    pub size: u64,
    /// Where it is found; the page's document is found nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discovered_by: Option<Discovery>,
    /// How long it takes to parse or run all of it. What is discovered at a share of its bytes waits
    /// for that share of this time.
    #[serde(default, rename = "parse_s", with = "seconds")]
    pub parse: Duration,
    /// How long its server takes before it answers.
    #[serde(default, rename = "think_s", with = "seconds")]
    pub think: Duration,
    /// Whether nothing is shown before it is done.
    #[serde(default)]
    pub blocking: bool,
    /// Its urgency (RFC 9218 section 4.1), if not the one that Chrome would give it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub urgency: Option<u8>,
    /// Whether parts of it are of use (RFC 9218 section 4.2), if not as Chrome would say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incremental: Option<bool>,
}

/// Where an object is found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// In which other object.
    pub object: String,
    /// How much of that must have arrived, from 0 (the header of its response) to 1 (all of it).
    pub share: f64,
}

/// What an object is.
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
    /// A picture.
    Image,
    /// What scripts ask for: data.
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
    /// What a [`generated`](crate::server::generated) site needs to be `host`, by path.
    pub fn generated(&self, host: &str) -> BTreeMap<String, GeneratedObject> {
        let objects = self.objects.iter().filter(|object| object.host == host);
        let objects = objects.map(|object| {
            // Sites go by paths without queries.
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
