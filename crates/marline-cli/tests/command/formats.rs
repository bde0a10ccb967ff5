//! What programs read: its fields are in the reference.

use serde_json::Value;

use super::*;

/// The text between the heading `title` of the page of formats and the next one.
fn section(title: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/formats.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once(&format!("## {title}\n")).unwrap();
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The names of all fields in `value`, at every depth.
fn fields(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                found.push(name.clone());
                fields(inner, found);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| fields(item, found)),
        _ => {}
    }
}

#[track_caller]
fn are_documented(value: &Value, title: &str) {
    let section = section(title);
    let mut names = Vec::new();
    fields(value, &mut names);
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let is_named = [
            format!("`{name}`"),
            format!("].{name}`"),
            format!("`.{name}`"),
        ];
        assert!(
            is_named.iter().any(|named| section.contains(named)),
            "docs/reference/formats.md, {title}: no field `{name}`"
        );
    }
}

#[test]
fn every_field_of_the_access_log_and_of_the_report_of_get_is_documented() {
    let scratch = TempDir::new().unwrap();
    let public = scratch.path().join("public");
    fs::create_dir(&public).unwrap();
    fs::write(public.join("a"), "a").unwrap();
    let log = scratch.path().join("access.jsonl");
    let server = Server::start(&[text(&public), "--access-log", text(&log)]);
    let into = scratch.path().join("got");
    let url = server.url("a");
    let missing = server.url("missing");
    let report = run(&[
        "get",
        &url,
        &missing,
        "--insecure",
        "--json",
        "--pipes",
        "rr",
        "-o",
        text(&into),
    ]);
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    assert_eq!(report["objects"].as_array().unwrap().len(), 2);
    are_documented(&report, "Report of `marline get`");
    server.terminate();
    let lines = fs::read_to_string(&log).unwrap();
    let line: Value = serde_json::from_str(lines.lines().next().unwrap()).unwrap();
    are_documented(&line, "Access log");
}
