//! What the demo serves: documents that are there, and objects made up.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use marline_http::client::Report;

/// Sizes of the objects made up, in bytes; the largest is the caller's.
const SIZES: [u64; 5] = [1 << 10, 10 << 10, 100 << 10, 1 << 20, 10 << 20];

/// One object: what was served, and what became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    /// Its path below the root.
    pub(super) name: String,
    pub(super) bytes: u64,
    /// SHA-256 of what was served, in hexadecimal.
    pub(super) served: String,
    /// SHA-256 of what was fetched; `None` if nothing is there.
    pub(super) fetched: Option<String>,
    /// From the request to the last byte.
    pub(super) seconds: f64,
    pub(super) error: Option<String>,
}

impl Object {
    pub(super) fn is_whole(&self) -> bool {
        self.fetched.as_ref() == Some(&self.served)
    }
}

/// A directory ready to be served.
pub(super) struct Site {
    pub(super) root: PathBuf,
    pub(super) objects: Vec<Object>,
}

impl Site {
    /// Fills `out/site` with the documents of `dir` and objects of 1 KB up to `largest` bytes.
    pub(super) fn build(dir: &Path, out: &Path, largest: u64) -> io::Result<Self> {
        let root = out.join("site");
        for stale in [&root, &out.join("fetched"), &out.join("qlog")] {
            match fs::remove_dir_all(stale) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::create_dir_all(&root)?;
        for document in documents(dir)? {
            let target = root.join(&document);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::copy(dir.join(&document), target)?;
        }
        let sizes = SIZES
            .into_iter()
            .filter(|&size| size < largest)
            .chain([largest]);
        for (seed, size) in (1..).zip(sizes) {
            fs::write(root.join(name_of(size)), noise(size as usize, seed))?;
        }
        let mut site = Self {
            root,
            objects: Vec::new(),
        };
        site.list(Path::new(""))?;
        site.objects.sort_by_key(|object| object.bytes);
        Ok(site)
    }

    fn list(&mut self, below: &Path) -> io::Result<()> {
        for entry in fs::read_dir(self.root.join(below))? {
            let entry = entry?;
            let name = below.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                self.list(&name)?;
            } else {
                self.objects.push(Object {
                    bytes: entry.metadata()?.len(),
                    served: checksum(&entry.path())?,
                    name: name.to_string_lossy().into_owned(),
                    ..Object::default()
                });
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }

    /// The objects with what was fetched of them.
    pub(super) fn compare(self, fetched: &Path, report: &Report) -> io::Result<Vec<Object>> {
        let mut objects = self.objects;
        for (object, told) in objects.iter_mut().zip(&report.objects) {
            let file = fetched.join(&object.name);
            object.fetched = if file.exists() {
                Some(checksum(&file)?)
            } else {
                None
            };
            object.seconds = told.end_s - told.start_s;
            object.error.clone_from(&told.error);
        }
        Ok(objects)
    }
}

/// The documents of a directory: Markdown at its top and everything in `docs`.
fn documents(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = PathBuf::from(entry?.file_name());
        if name.extension().is_some_and(|extension| extension == "md") {
            found.push(name);
        }
    }
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(dir.join(&folder)) else {
            continue;
        };
        for entry in entries {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            if entry.file_type()?.is_dir() {
                folders.push(name);
            } else {
                found.push(name);
            }
        }
    }
    Ok(found)
}

fn name_of(size: u64) -> String {
    match size >> 20 {
        0 => format!("{}KB.bin", size >> 10),
        megabytes => format!("{megabytes}MB.bin"),
    }
}

/// Bytes that do not compress, the same for the same seed.
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn checksum(file: &Path) -> io::Result<String> {
    let digest = digest::digest(&digest::SHA256, &fs::read(file)?);
    Ok(digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
