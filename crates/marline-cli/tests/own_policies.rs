//! The page about policies of one's own shows the files of the example, which is built and tested as a crate outside of
//! marline's own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn example(name: &str) -> String {
    let directory = root().join("crates/marline-cli/examples/own_policies");
    fs::read_to_string(directory.join(name)).unwrap()
}

#[test]
fn the_page_shows_the_example_as_it_is() {
    let page = fs::read_to_string(root().join("docs/own-policies.md")).unwrap();
    for name in ["scalable.rs", "main.rs", "drx.rs"] {
        let block = format!("```rust,ignore\n{}```", example(name));
        assert!(
            page.contains(&block),
            "docs/own-policies.md does not show {name} as it is"
        );
    }
    let block = format!("```toml\n{}```", example("first.toml"));
    assert!(
        page.contains(&block),
        "docs/own-policies.md does not show first.toml as it is"
    );
}

#[test]
fn the_page_of_tasks_shows_the_example_as_it_is() {
    let page = fs::read_to_string(root().join("docs/tasks.md")).unwrap();
    let shown: String = page
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    let file: String = example("least_filled.rs")
        .lines()
        .map(|line| format!("{}\n", line.trim_start()))
        .collect();
    assert!(
        shown.contains(&file),
        "docs/tasks.md does not show least_filled.rs as it is"
    );
}
