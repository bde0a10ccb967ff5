//! `marline qlog convert`.

use std::fs::{self, File};

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, fails, marline, run, site, text};

/// The log of a client that fetched a file.
fn client_log(directory: &TempDir) -> std::path::PathBuf {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    let logs = directory.path().join("logs");
    let fetched = [
        "get",
        &url,
        "--insecure",
        "--http",
        "3",
        "--qlog",
        text(&logs),
    ];
    assert_eq!(run(&fetched).stdout, b"first");
    fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn a_log_is_converted_for_qvis_from_and_to_files_and_streams() {
    let directory = TempDir::new().unwrap();
    let log = client_log(&directory);
    let converted = directory.path().join("client.qlog");
    let to_file = run(&[
        "qlog",
        "convert",
        "--for",
        "qvis",
        text(&log),
        text(&converted),
    ]);
    assert!(to_file.status.success(), "{to_file:?}");
    assert!(
        to_file.stdout.is_empty() && to_file.stderr.is_empty(),
        "{to_file:?}"
    );
    let bytes = fs::read(&converted).unwrap();
    let document: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(document["qlog_version"], "0.3");
    let trace = &document["traces"][0];
    assert_eq!(trace["vantage_point"]["type"], "client");
    let events = trace["events"].as_array().unwrap();
    for name in [
        "transport:parameters_set",
        "transport:packet_sent",
        "transport:packet_received",
        "recovery:metrics_updated",
    ] {
        assert!(events.iter().any(|event| event["name"] == name), "{name}");
    }

    let streams = marline(&["qlog", "convert", "--for", "qvis", "-", "-"])
        .stdin(File::open(&log).unwrap())
        .output()
        .unwrap();
    assert!(streams.status.success(), "{streams:?}");
    assert_eq!(streams.stdout, bytes);

    let summary = run(&["qlog", "summary", text(&converted)]);
    assert!(summary.status.success(), "{summary:?}");
}

#[test]
fn malformed_records_are_reported_and_the_rest_is_converted() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("a.sqlog");
    fs::write(
        &log,
        "\u{1e}{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{}}\n\u{1e}{\n",
    )
    .unwrap();
    let output = run(&["qlog", "convert", "--for", "qvis", text(&log), "-"]);
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains("1 malformed record skipped") && printed.contains("record 2"),
        "{printed}"
    );
}

#[test]
fn errors_of_convert_say_what_to_do() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("a.sqlog");
    fs::write(
        &log,
        "{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{}}\n",
    )
    .unwrap();
    let missing = directory.path().join("missing").join("a.qlog");
    let (log, missing) = (text(&log), text(&missing));
    let convert = ["qlog", "convert"];
    let with = |rest: &[&'static str]| [&convert[..], rest].concat();
    fails(&with(&["a", "b"]), 2, &["--for"]);
    fails(
        &with(&["--for", "wireshark", "a", "b"]),
        2,
        &["wireshark", "qvis"],
    );
    for (arguments, status, words) in [
        ([log, "b.sqlog"], 2, ["b.sqlog", ".qlog"]),
        ([missing, "-"], 1, ["missing", "check the path"]),
        (
            [text(directory.path()), "-"],
            1,
            ["", "name the files in it"],
        ),
        (
            [log, missing],
            1,
            ["cannot write", "make its directory first"],
        ),
    ] {
        fails(
            &[&with(&["--for", "qvis"])[..], &arguments].concat(),
            status,
            &words,
        );
    }
}

#[cfg(unix)]
#[test]
fn pipes_and_devices_are_neither_waited_for_nor_read_without_end() {
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    for file in [text(&pipe), "/dev/zero"] {
        let words = [file, "not a regular file", "standard input"];
        fails(&["qlog", "summary", file], 1, &words);
        fails(&["qlog", "convert", "--for", "qvis", file, "-"], 1, &words);
    }
    let scenario = directory.path().join("pipe.toml");
    fs::rename(&pipe, &scenario).unwrap();
    fails(&["lab", "run", text(&scenario)], 2, &["not a regular file"]);
}

#[test]
fn a_log_is_summarized_from_standard_input() {
    let directory = TempDir::new().unwrap();
    let log = directory.path().join("a.sqlog");
    fs::write(
        &log,
        "{\"time\":1,\"name\":\"quic:packet_sent\",\"data\":{}}\n",
    )
    .unwrap();
    let output = marline(&["qlog", "summary", "-"])
        .stdin(File::open(&log).unwrap())
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with("standard input\n"), "{printed}");
    assert!(printed.contains("1 packet,"), "{printed}");
}
