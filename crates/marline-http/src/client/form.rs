//! Forms with files: `multipart/form-data` (RFC 7578).

use std::fmt::Write as _;
use std::path::PathBuf;

use bytes::Bytes;
use http::HeaderValue;

use super::upload::{Upload, UploadPart};

/// A form whose fields are sent one after another; files are read while they are sent.
#[derive(Clone, Debug)]
pub struct Form {
    boundary: String,
    parts: Vec<UploadPart>,
}

/// A field of a form, besides its content.
#[derive(Clone, Debug, Default)]
pub struct FormField {
    /// Its name.
    pub name: String,
    /// The name of the file that its content is.
    pub file_name: Option<String>,
    /// The media type of its content.
    pub media_type: Option<String>,
}

impl Form {
    /// An empty form. `random` makes the boundary, which must not occur in its content.
    pub fn new(random: [u8; 16]) -> Self {
        let mut boundary = "-".repeat(24);
        for byte in random {
            // Writing to a String cannot fail.
            let _ = write!(boundary, "{byte:02x}");
        }
        Self {
            boundary,
            parts: Vec::new(),
        }
    }

    /// Adds a field with this content.
    pub fn add(&mut self, field: &FormField, content: UploadPart) {
        let mut head = format!(
            "--{}\r\nContent-Disposition: form-data; name=\"{}\"",
            self.boundary,
            quoted(&field.name)
        );
        if let Some(name) = &field.file_name {
            let _ = write!(head, "; filename=\"{}\"", quoted(name));
        }
        if let Some(kind) = &field.media_type {
            let kind: String = kind.chars().filter(|c| !c.is_control()).collect();
            let _ = write!(head, "\r\nContent-Type: {kind}");
        }
        head.push_str("\r\n\r\n");
        self.parts.push(UploadPart::Bytes(head.into()));
        self.parts.push(content);
        self.parts
            .push(UploadPart::Bytes(Bytes::from_static(b"\r\n")));
    }

    /// Adds a file as a field; its name and its type are those of the path unless `field` has others.
    pub fn add_file(&mut self, mut field: FormField, path: PathBuf) {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        field.file_name = field.file_name.or(name);
        let kind = media_type_of(&path).to_owned();
        field.media_type = field.media_type.or(Some(kind));
        self.add(&field, UploadPart::File(path));
    }

    /// The value of `Content-Type`.
    pub fn media_type(&self) -> HeaderValue {
        let value = format!("multipart/form-data; boundary={}", self.boundary);
        HeaderValue::try_from(value).expect("dashes and digits are visible ASCII")
    }

    /// The content.
    pub fn upload(mut self) -> Upload {
        let end = format!("--{}--\r\n", self.boundary);
        self.parts.push(UploadPart::Bytes(end.into()));
        Upload::new(self.parts)
    }
}

/// The type of a file by its name, of those that curl knows.
fn media_type_of(path: &std::path::Path) -> &'static str {
    let extension = path.extension().and_then(|text| text.to_str());
    match extension.unwrap_or_default().to_ascii_lowercase().as_str() {
        "gif" => "image/gif",
        "jpg" | "jpeg" => "image/jpeg",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain",
        "htm" | "html" => "text/html",
        "pdf" => "application/pdf",
        "xml" => "application/xml",
        _ => "application/octet-stream",
    }
}

/// A name between quotes, as browsers write it (HTML, section 4.10.21.8).
fn quoted(name: &str) -> String {
    name.replace('"', "%22")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}
