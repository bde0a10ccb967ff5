//! Kinds of objects, and their priorities (the paper's table II).

use std::collections::BTreeMap;

use marline::settings::{Named, Word, unknown};

/// The kind of an object, as far as priorities and usual sizes depend on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// Moving pictures.
    Video,
    /// Sound.
    Audio,
    /// JavaScript.
    Script,
    /// HTML.
    Document,
    /// Pictures.
    Image,
    /// Everything else.
    #[default]
    Other,
}

impl Named for ObjectKind {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "video",
            about: "Moving pictures",
            value: Self::Video,
        },
        Word {
            name: "audio",
            about: "Sound",
            value: Self::Audio,
        },
        Word {
            name: "script",
            about: "JavaScript",
            value: Self::Script,
        },
        Word {
            name: "document",
            about: "HTML",
            value: Self::Document,
        },
        Word {
            name: "image",
            about: "Pictures",
            value: Self::Image,
        },
        Word {
            name: "other",
            about: "Everything else",
            value: Self::Other,
        },
    ];
}

impl ObjectKind {
    /// The kind of a media type, as in `Content-Type`.
    pub fn of_media_type(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let (major, minor) = essence.split_once('/').unwrap_or((essence, ""));
        match (major, minor) {
            ("video", _) => Self::Video,
            ("audio", _) => Self::Audio,
            ("image", _) => Self::Image,
            (_, "javascript" | "ecmascript" | "x-javascript") => Self::Script,
            (_, "html" | "xhtml+xml") => Self::Document,
            _ => Self::Other,
        }
    }

    /// The kind of what a browser requests for `destination`, the value of `Sec-Fetch-Dest` (Fetch Metadata Request
    /// Headers, section 2.1), if that determines it.
    pub fn of_destination(destination: &str) -> Option<Self> {
        match destination {
            "video" => Some(Self::Video),
            "audio" => Some(Self::Audio),
            "script" | "worker" | "serviceworker" | "sharedworker" | "audioworklet"
            | "paintworklet" => Some(Self::Script),
            "document" | "frame" | "iframe" => Some(Self::Document),
            "image" => Some(Self::Image),
            // The path is more specific for the others: a style sheet has no kind, and "empty" is whatever a script
            // fetches.
            _ => None,
        }
    }

    /// Its priority in table II: 4 is the highest.
    pub const fn priority(self) -> u8 {
        match self {
            Self::Video | Self::Audio => 4,
            Self::Script => 3,
            Self::Document => 2,
            Self::Image | Self::Other => 1,
        }
    }

    /// The assumed size in bytes until a response announces it: about the mean on web pages.
    pub const fn usual_bytes(self) -> u64 {
        match self {
            Self::Video => 1 << 20,
            Self::Audio => 256 << 10,
            Self::Script | Self::Document | Self::Other => 32 << 10,
            Self::Image => 64 << 10,
        }
    }
}

/// The kinds of objects by the extensions of their paths, and the priorities of kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectKinds {
    extensions: BTreeMap<String, ObjectKind>,
    priorities: BTreeMap<ObjectKind, u8>,
}

impl Default for ObjectKinds {
    /// Extensions that are usual on the web, and the priorities of table II.
    fn default() -> Self {
        let extensions = [
            (
                ObjectKind::Video,
                &["mp4", "m4s", "ts", "webm", "mov", "mkv"][..],
            ),
            (
                ObjectKind::Audio,
                &["mp3", "m4a", "aac", "ogg", "opus", "wav", "flac"],
            ),
            (ObjectKind::Script, &["js", "mjs"]),
            (ObjectKind::Document, &["html", "htm", "xhtml"]),
            (
                ObjectKind::Image,
                &[
                    "jpg", "jpeg", "png", "gif", "webp", "avif", "svg", "ico", "bmp",
                ],
            ),
        ];
        let extensions = extensions
            .into_iter()
            .flat_map(|(kind, names)| names.iter().map(move |name| ((*name).to_owned(), kind)));
        Self {
            extensions: extensions.collect(),
            priorities: BTreeMap::new(),
        }
    }
}

impl ObjectKinds {
    /// The same with `extension`, without a dot, for objects of `kind`.
    #[must_use]
    pub fn with_extension(mut self, extension: &str, kind: ObjectKind) -> Self {
        self.extensions.insert(extension.to_ascii_lowercase(), kind);
        self
    }

    /// The same with another priority for `kind`: from 1 to 4, the highest.
    #[must_use]
    pub fn with_priority(mut self, kind: ObjectKind, priority: u8) -> Self {
        self.priorities.insert(kind, priority.clamp(1, 4));
        self
    }

    /// Changes it by `text`: `EXTENSION=KIND`, as `php=document`, or `KIND=PRIORITY`, as `document=4`.
    ///
    /// # Errors
    /// The text is neither; the message lists the allowed values.
    pub fn with(self, text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "\"{text}\" is neither EXTENSION=KIND, as php=document, nor KIND=PRIORITY, as document=4"
            )
        };
        let (left, right) = text.split_once('=').ok_or_else(wrong)?;
        let kind = |name: &str| {
            let word = ObjectKind::WORDS.iter().find(|word| word.name == name);
            word.map(|word| word.value)
        };
        if let Ok(priority) = right.parse::<u8>() {
            let kind = kind(left).ok_or_else(wrong)?;
            if !(1..=4).contains(&priority) {
                return Err(format!("a priority is from 1 to 4, not {priority}"));
            }
            return Ok(self.with_priority(kind, priority));
        }
        let names = ObjectKind::WORDS.iter().map(|word| word.name);
        let kind = kind(right).ok_or_else(|| unknown("kind", right, names))?;
        Ok(self.with_extension(left.trim_start_matches('.'), kind))
    }

    /// The kind of the object at `path`: a path that ends in `/` is a document.
    pub fn of_path(&self, path: &str) -> ObjectKind {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let name = path.rsplit('/').next().unwrap_or_default();
        if name.is_empty() {
            return ObjectKind::Document;
        }
        let extension = name.rsplit_once('.').map(|(_, extension)| extension);
        let extension = extension.unwrap_or_default().to_ascii_lowercase();
        self.extensions.get(&extension).copied().unwrap_or_default()
    }

    /// The priority of `kind`.
    pub fn priority(&self, kind: ObjectKind) -> u8 {
        let changed = self.priorities.get(&kind);
        changed.copied().unwrap_or_else(|| kind.priority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extensions_name_kinds_whatever_their_case_and_query() {
        let kinds = ObjectKinds::default();
        for (path, kind) in [
            ("/", ObjectKind::Document),
            ("/a/index.HTML?x=1", ObjectKind::Document),
            ("/v.mp4#t=2", ObjectKind::Video),
            ("/app.js", ObjectKind::Script),
            ("/app.js/data", ObjectKind::Other),
            ("/p.webp", ObjectKind::Image),
            ("/noname", ObjectKind::Other),
        ] {
            assert_eq!(kinds.of_path(path), kind, "{path}");
        }
    }

    #[test]
    fn the_table_can_be_changed_by_words() {
        let kinds = ObjectKinds::default().with("php=document").unwrap();
        let kinds = kinds.with("document=4").unwrap();
        assert_eq!(kinds.of_path("/index.php"), ObjectKind::Document);
        assert_eq!(kinds.priority(ObjectKind::Document), 4);
        assert_eq!(kinds.priority(ObjectKind::Script), 3);
        for wrong in ["php", "php=page", "page=3", "document=5"] {
            assert!(ObjectKinds::default().with(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn destinations_of_browsers_name_kinds_or_none() {
        for (text, kind) in [
            ("document", Some(ObjectKind::Document)),
            ("sharedworker", Some(ObjectKind::Script)),
            ("image", Some(ObjectKind::Image)),
            ("style", None),
            ("empty", None),
            ("", None),
        ] {
            assert_eq!(ObjectKind::of_destination(text), kind, "{text}");
        }
    }

    #[test]
    fn media_types_name_kinds() {
        for (text, kind) in [
            ("text/html; charset=utf-8", ObjectKind::Document),
            ("application/javascript", ObjectKind::Script),
            ("video/mp4", ObjectKind::Video),
            ("", ObjectKind::Other),
        ] {
            assert_eq!(ObjectKind::of_media_type(text), kind, "{text}");
        }
    }
}
