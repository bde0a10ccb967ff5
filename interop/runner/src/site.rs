//! Files and certificates of servers.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

use crate::cases::{Case, Files};

/// The name in SNI, `:authority` and the certificate.
pub(crate) const NAME: &str = "www.example.test";
/// Names that make a certificate of about 9 kB, three times what a server may answer one client datagram with.
const MANY_NAMES: usize = 250;

/// Certificate and key, in PEM files.
pub(crate) struct Identity {
    pub(crate) cert: PathBuf,
    pub(crate) key: PathBuf,
}

impl Identity {
    /// Makes a self-signed certificate for [`NAME`] and loopback below `dir`.
    pub(crate) fn create(dir: &Path, large: bool) -> anyhow::Result<Self> {
        fs::create_dir_all(dir)?;
        let mut names: Vec<String> = [NAME, "localhost", "127.0.0.1", "::1"]
            .map(str::to_owned)
            .into();
        if large {
            names.extend((0..MANY_NAMES).map(|n| format!("server-number-{n:03}.{NAME}")));
        }
        let made = rcgen::generate_simple_self_signed(names)?;
        let (cert, key) = (dir.join("cert.pem"), dir.join("key.pem"));
        fs::write(&cert, made.cert.pem())?;
        fs::write(&key, made.signing_key.serialize_pem())?;
        Ok(Self { cert, key })
    }
}

/// The files of a case.
pub(crate) struct Site {
    pub(crate) www: PathBuf,
    pub(crate) paths: Vec<String>,
    /// `paths`, one per line.
    pub(crate) list: PathBuf,
}

impl Site {
    /// Writes the files of `case` below `dir`. Their content depends only on the names of the case and the file.
    pub(crate) fn create(dir: &Path, case: &Case) -> anyhow::Result<Self> {
        let www = dir.join("www");
        if www.exists() {
            fs::remove_dir_all(&www)?;
        }
        fs::create_dir_all(&www)?;
        let mut rng = Pcg64::seed_from_u64(case.name.len() as u64);
        let mut bytes = |size| {
            let mut content = vec![0; size];
            rng.fill_bytes(&mut content);
            content
        };
        let files: Vec<(String, Vec<u8>)> = match case.files {
            Files::Sizes(sizes) => sizes
                .iter()
                .enumerate()
                .map(|(n, &size)| (format!("/file-{n}"), bytes(size)))
                .collect(),
            Files::Many { count, size } => (0..count)
                .map(|n| (format!("/file-{n}"), bytes(size)))
                .collect(),
            Files::Page { scripts } => page(scripts),
        };
        for (path, content) in &files {
            let file = www.join(path.trim_start_matches('/'));
            fs::write(&file, content).with_context(|| file.display().to_string())?;
        }
        let paths: Vec<String> = files.into_iter().map(|(path, _)| path).collect();
        let list = dir.join("paths");
        fs::write(&list, paths.join("\n"))?;
        Ok(Self { www, paths, list })
    }

    /// Compares the files in `out` with those served, byte for byte.
    pub(crate) fn compare(&self, out: &Path) -> Result<(), String> {
        for path in &self.paths {
            let relative = path.trim_start_matches('/');
            let sent = fs::read(self.www.join(relative)).map_err(|error| error.to_string())?;
            let Ok(arrived) = fs::read(out.join(relative)) else {
                return Err(format!("{path} did not arrive"));
            };
            if sent != arrived {
                return Err(format!("{path} differs from what was served"));
            }
        }
        Ok(())
    }
}

/// A page and its scripts, of 1 to 40 kB; valid content, because browsers abort on malformed objects.
fn page(scripts: usize) -> Vec<(String, Vec<u8>)> {
    let mut rng = Pcg64::seed_from_u64(scripts as u64);
    let mut html = String::from("<!doctype html>\n<title>page</title>\n");
    let mut files = Vec::new();
    for n in 0..scripts {
        // Writing to a string cannot fail.
        let _ = writeln!(html, "<script src=\"/object-{n}.js\"></script>");
        let mut script = format!("window.loaded = (window.loaded || 0) + 1;\n// {n} ");
        for _ in 0..rng.random_range(64..2560) {
            let _ = write!(script, "{:016x}", rng.random::<u64>());
        }
        script.push('\n');
        files.push((format!("/object-{n}.js"), script.into_bytes()));
    }
    files.insert(0, ("/index.html".to_owned(), html.into_bytes()));
    files
}
