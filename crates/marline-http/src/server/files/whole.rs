//! Requests for whole files, which most are: answered without the steps that `ServeDir` takes for others. The responses are those that
//! it makes.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RANGE, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response};

use super::body::{FileBody, read_whole};
use super::kept::KeptFile;
use super::root::{HeldOpen, Opened, Root};
use super::validators::Validators;
use super::{VARIES, declared_type, failed, unmet};
use crate::body::Body;
use crate::limits;
use crate::server::resources::Origin;

/// The fields of a response, with those that the server adds.
const FIELDS: usize = 10;

/// A content coding of precompressed variants.
struct Coding {
    name: &'static str,
    /// Its names in `Accept-Encoding`.
    tokens: &'static [&'static str],
    extension: &'static str,
}

/// The codings of variants, from the one that is preferred.
const CODINGS: [Coding; 3] = [
    Coding {
        name: "zstd",
        tokens: &["zstd"],
        extension: ".zst",
    },
    Coding {
        name: "br",
        tokens: &["br"],
        extension: ".br",
    },
    Coding {
        name: "gzip",
        tokens: &["gzip", "x-gzip"],
        extension: ".gz",
    },
];

/// A GET of a whole file by its plain name.
pub(super) struct WholeFile {
    path: PathBuf,
    /// Whether the client accepts each of [`CODINGS`].
    accepts: [bool; CODINGS.len()],
}

/// A representation of a file.
struct Representation {
    path: PathBuf,
    found: Found,
    /// Its content coding, if it is a precompressed variant.
    coding: Option<HeaderValue>,
}

enum Found {
    /// Without a content coding.
    Kept(Arc<KeptFile>),
    Opened(Opened),
}

impl WholeFile {
    /// The file that `request` is for. `None` if it is not for a whole file, or for one whose name is written in an unusual way, or if it
    /// weighs content codings: those are left to `ServeDir`.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        // There, more names than these lead out of a directory or to devices.
        if cfg!(windows)
            || *request.method() != Method::GET
            || request.headers().contains_key(RANGE)
        {
            return None;
        }
        let path = request.uri().path().strip_prefix('/')?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let is_name = |part: &str| !matches!(part, "" | "." | "..");
        if !path.bytes().all(is_plain) || !path.split('/').all(is_name) {
            return None;
        }
        Some(Self {
            path: path.into(),
            accepts: accepted(request.headers())?,
        })
    }

    /// The response to a request with `headers`; `None` if it is not for a regular file, or `ServeDir` has to say why there is none.
    pub(super) async fn answer(self, root: &Root, headers: &HeaderMap) -> Option<Response<Body>> {
        let origin = root.origin();
        let now = origin.and_then(Origin::unix_time);
        let Representation {
            path,
            found,
            coding,
        } = self.representation(root, now).await?;
        let opened = match found {
            Found::Kept(kept) => {
                let KeptFile {
                    kind,
                    validators,
                    content,
                } = &*kept;
                return Some(match validators.check(headers) {
                    Some(status) => unmet(status, validators),
                    None => {
                        let head = Head::new(kind.as_ref(), validators, None);
                        head.with(content.len() as u64, Body::full(content.clone()))
                    }
                });
            }
            Found::Opened(opened) => opened,
        };
        let validators = |metadata: &Metadata| {
            let modified = metadata.modified().ok()?;
            Some(Validators::new(
                modified,
                metadata.len(),
                coding.as_ref(),
                now,
            ))
        };
        let before = validators(&opened.metadata)?;
        if let Some(status) = before.check(headers) {
            return Some(unmet(status, &before));
        }
        let kind = declared_type(guess_type(&self.path));
        if let Some(content) = small_content(&opened, origin) {
            if let (None, Some(now)) = (&coding, now) {
                let file = KeptFile {
                    kind: kind.clone(),
                    validators: before.clone(),
                    // Its own: that of the response is in the budget of its client.
                    content: Bytes::copy_from_slice(&content),
                };
                root.keep(path, &opened, now, file);
            }
            let head = Head::new(kind.as_ref(), &before, coding.as_ref());
            return Some(head.with(content.len() as u64, Body::full(content)));
        }
        let HeldOpen { file, metadata } = match root.hold(path, Some(opened)).await {
            Ok(held) => held,
            Err(error) => return Some(failed(&error)),
        };
        // It may have been opened again, after it had changed.
        let (len, validators) = (metadata.len(), validators(&metadata)?);
        let content = FileBody::begin(file, 0, len, origin.cloned()).await;
        Some(match content {
            Ok(content) => {
                let head = Head::new(kind.as_ref(), &validators, coding.as_ref());
                head.with(len, Body::new(content))
            }
            Err(error) => failed(&io::Error::other(error)),
        })
    }

    /// The representation that the client prefers of those that are there at `now`, if the file is.
    async fn representation(&self, root: &Root, now: Option<SystemTime>) -> Option<Representation> {
        let found = match now.and_then(|now| root.kept(&self.path, now)) {
            Some(kept) => Found::Kept(kept),
            None => Found::Opened(root.look_at(self.path.clone()).await.ok()?),
        };
        if let Found::Opened(opened) = &found
            && !opened.metadata.is_file()
        {
            return None;
        }
        for (coding, _) in CODINGS
            .iter()
            .zip(self.accepts)
            .filter(|(_, accepts)| *accepts)
        {
            let mut path = self.path.clone().into_os_string();
            path.push(coding.extension);
            let path = PathBuf::from(path);
            match root.look_at(path.clone()).await {
                Ok(variant) if variant.metadata.is_file() => {
                    return Some(Representation {
                        path,
                        found: Found::Opened(variant),
                        coding: Some(HeaderValue::from_static(coding.name)),
                    });
                }
                // A directory of that name is not a variant.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return None,
            }
        }
        Some(Representation {
            path: self.path.clone(),
            found,
            coding: None,
        })
    }
}

/// The fields of a response that describe its file.
struct Head<'a> {
    kind: Option<&'a HeaderValue>,
    validators: &'a Validators,
    coding: Option<&'a HeaderValue>,
}

impl<'a> Head<'a> {
    fn new(
        kind: Option<&'a HeaderValue>,
        validators: &'a Validators,
        coding: Option<&'a HeaderValue>,
    ) -> Self {
        Self {
            kind,
            validators,
            coding,
        }
    }

    /// The response with `body`, which has `len` bytes.
    fn with(self, len: u64, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.reserve(FIELDS);
        headers.extend(self.kind.map(|kind| (CONTENT_TYPE, kind.clone())));
        headers.insert(ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.extend(self.coding.map(|coding| (CONTENT_ENCODING, coding.clone())));
        headers.insert(VARY, VARIES);
        headers.insert(CONTENT_LENGTH, len.into());
        self.validators.add_to(headers);
        response
    }
}

/// The type of a file that its name suggests, by the database of `ServeDir`.
fn guess_type(path: &Path) -> &'static str {
    let guessed = mime_guess::from_path(path).first_raw();
    guessed.unwrap_or("application/octet-stream")
}

/// Which of [`CODINGS`] a request with `headers` accepts; `None` if it weighs them.
fn accepted(headers: &HeaderMap) -> Option<[bool; CODINGS.len()]> {
    let mut accepts = [false; CODINGS.len()];
    for value in headers.get_all(ACCEPT_ENCODING) {
        let value = value.to_str().ok()?;
        if value.contains(';') {
            return None;
        }
        for token in value.split(',').map(str::trim) {
            let is_meant = |coding: &Coding| {
                let mut tokens = coding.tokens.iter();
                tokens.any(|known| known.eq_ignore_ascii_case(token))
            };
            if let Some(index) = CODINGS.iter().position(is_meant) {
                accepts[index] = true;
            }
        }
    }
    Some(accepts)
}

/// The content of a small file, which is not held open then.
fn small_content(opened: &Opened, origin: Option<&Origin>) -> Option<Bytes> {
    let len = usize::try_from(opened.metadata.len()).ok()?;
    match len <= limits::SMALL_FILE_BYTES {
        true => read_whole(&opened.file, len, origin),
        false => None,
    }
}

#[cfg(test)]
mod tests;
