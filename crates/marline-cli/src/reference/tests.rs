//! The pages of `docs/reference` that the code knows are current. With `REGENERATE` set, they are written.

mod commands;
mod metrics;
mod statuses;

use std::path::{Path, PathBuf};

use super::*;

const STALE: &str =
    "is stale; run: REGENERATE=1 cargo test -p marline-cli --all-features --lib reference";

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/reference")
        .join(name)
}

/// Compares a committed page with the tables.
#[track_caller]
fn is_current(name: &str, page: &str) {
    let path = path_of(name);
    if std::env::var_os("REGENERATE").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/reference/{name} {STALE}");
}

/// Compares a part of a page, between `<!-- generated: PART -->` and `<!-- end -->`, with what the code knows.
#[track_caller]
fn part_is_current(name: &str, part: &str, text: &str) {
    let path = path_of(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let begin = format!("<!-- generated: {part} -->\n");
    let start = page.find(&begin).unwrap() + begin.len();
    let end = start + page[start..].find("<!-- end -->").unwrap();
    if std::env::var_os("REGENERATE").is_some() {
        let renewed = format!("{}\n{text}\n{}", &page[..start], &page[end..]);
        std::fs::write(&path, renewed).unwrap();
        return;
    }
    assert!(
        page[start..end].trim() == text.trim(),
        "{part} in docs/reference/{name} {STALE}"
    );
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    text.split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace('|', "\\|")
}

#[test]
fn the_page_of_policies_is_current() {
    is_current("policies.md", &policies());
}

#[test]
fn the_page_of_settings_is_current() {
    is_current("settings.md", &settings());
}

#[test]
fn every_key_and_every_policy_is_on_its_page() {
    let page = settings();
    for row in rows(TransportConfig::SETTINGS, "", &TransportConfig::default()) {
        assert!(page.contains(&format!("| `{}` |", row.key)), "{}", row.key);
    }
    let page = policies();
    for name in recovery::loss::DETECTORS.names() {
        assert!(page.contains(&format!("| `{name}` |")), "{name}");
    }
}
