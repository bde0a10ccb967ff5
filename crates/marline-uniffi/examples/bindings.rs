//! Generates the classes for Kotlin, Swift and Python from the library: `bindings LIBRARY DIRECTORY`.
#![expect(clippy::unwrap_used, reason = "a failure is shown by panicking")]

use std::env;
use std::path::Path;

use uniffi::{GenerateOptions, TargetLanguage};

/// Generates the classes of each language from the library at `library` into `directory`.
pub(crate) fn generate(library: &Path, directory: &Path) {
    let options = GenerateOptions {
        languages: vec![
            TargetLanguage::Kotlin,
            TargetLanguage::Swift,
            TargetLanguage::Python,
        ],
        source: library.to_str().unwrap().into(),
        out_dir: directory.to_str().unwrap().into(),
        config_override: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/bindings.toml").into()),
        ..GenerateOptions::default()
    };
    uniffi::generate(options).unwrap();
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [library, directory] = &arguments[..] else {
        eprintln!("bindings LIBRARY DIRECTORY");
        std::process::exit(2);
    };
    generate(Path::new(library), Path::new(directory));
}
