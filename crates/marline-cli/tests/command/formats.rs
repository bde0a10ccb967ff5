//! The output for programs: its fields are in the reference.

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

#[cfg(feature = "flow")]
#[test]
fn every_column_of_flows_is_documented() {
    let scratch = TempDir::new().unwrap();
    let capture = scratch.path().join("empty.pcap");
    // The header of a capture of raw IP without packets.
    let mut header = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    header.extend([0; 8]);
    header.extend([0xff, 0xff, 0, 0, 101, 0, 0, 0]);
    fs::write(&capture, header).unwrap();
    let records = scratch.path().join("flows.csv");
    let output = run(&["flow", text(&capture), "-o", text(&records)]);
    assert!(output.status.success(), "{output:?}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/flows.md");
    let page = fs::read_to_string(path).unwrap();
    let records = fs::read_to_string(&records).unwrap();
    let columns: Vec<_> = records.lines().next().unwrap().split(',').collect();
    assert!(columns.len() > 50, "{columns:?}");
    for column in columns {
        // The table names the columns of the client; those of the server are alike.
        let of_client = column.replacen("server_", "client_", 1);
        let is_named = [column, &of_client]
            .iter()
            .any(|name| page.contains(&format!("`{name}`")));
        assert!(is_named, "docs/reference/flows.md has no column `{column}`");
    }
}
