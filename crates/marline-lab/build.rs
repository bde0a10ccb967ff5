//! Lists the experiments and published tables for inclusion in the library, so that programs do not need the files.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// A link to the directory of the repository, so that the crate's package contains it.
const DIRECTORY: &str = "experiments";

/// Where results beside published numbers are, which only tests read.
const INDEX: &str = "published/index";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={DIRECTORY}");
    println!("cargo::rerun-if-changed=build.rs");
    let variable = |name| {
        env::var_os(name)
            .map(PathBuf::from)
            .ok_or(io::ErrorKind::NotFound)
    };
    let directory = variable("CARGO_MANIFEST_DIR")?.join(DIRECTORY);
    let mut files = Vec::new();
    collect(&directory, &mut files)?;
    files.sort();
    let mut code = String::from("&[\n");
    for path in files {
        let name = path.strip_prefix(&directory).map_err(io::Error::other)?;
        let name = name.to_string_lossy().replace('\\', "/");
        let _ = writeln!(
            code,
            "File {{ path: {name:?}, text: include_str!({path:?}) }},"
        );
    }
    code.push_str("]\n");
    fs::write(variable("OUT_DIR")?.join("embedded.rs"), code)
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.ends_with(INDEX) {
            continue;
        }
        if path.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|kind| kind == "toml" || kind == "csv")
        {
            files.push(path);
        }
    }
    Ok(())
}
