//! Finds the commit of which the program is built, for `--version` and the results of experiments.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=MARLINE_VERSION={version}");
    // Sources that were copied into another repository are of no commit there.
    if git(&["rev-parse", "--show-prefix"]).as_deref() != Some("crates/marline-cli/") {
        return;
    }
    let head = git(&["symbolic-ref", "-q", "HEAD"]);
    for name in ["HEAD", "packed-refs"].into_iter().chain(head.as_deref()) {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        println!("cargo:rustc-env=MARLINE_COMMIT={commit}");
        println!("cargo:rustc-env=MARLINE_VERSION={version} ({commit})");
    }
}

/// The output of git; `None` if it fails or prints nothing.
fn git(arguments: &[&str]) -> Option<String> {
    let directory = env::var_os("CARGO_MANIFEST_DIR")?;
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
