//! Several paths between addresses of this host.

use serde_json::Value;

use super::*;

/// A size whose transfer takes longer than opening a path, and than repeating a lost challenge.
const LARGE: u64 = 150_000_000;

fn large() -> TempDir {
    let root = TempDir::new().unwrap();
    let file = fs::File::create(root.path().join("large")).unwrap();
    file.set_len(LARGE).unwrap();
    root
}

/// The report of a transfer over these paths, and the standard error.
fn get(server: &Server, more: &[&str]) -> (Value, String) {
    let url = server.url("large");
    let arguments = [&["get", &url, "--insecure", "--json"], more].concat();
    let output = run(&arguments);
    let printed = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(output.status.success(), "{printed}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["objects"][0]["bytes"], LARGE);
    (report, printed)
}

/// The local addresses of the paths of the first connection, and the bytes that each received.
fn paths(report: &Value) -> Vec<(String, u64)> {
    let paths = report["connections"][0]["paths"].as_array().unwrap();
    let path = |path: &Value| {
        let local = path["local"].as_str().unwrap();
        let (address, _port) = local.rsplit_once(':').unwrap();
        assert!(path["remote"].as_str().unwrap().starts_with("127.0.0.1:"));
        (address.to_owned(), path["bytes_received"].as_u64().unwrap())
    };
    paths.iter().map(path).collect()
}

const TWO: [&str; 4] = ["--path", "127.0.0.2", "--path", "127.0.0.3"];

#[test]
fn each_path_option_opens_a_path() {
    let root = large();
    for server in [&["--profile", "multipath"][..], &["--scheduler", "rr"][..]] {
        let server = Server::start(&[&[text(root.path())], server].concat());
        let (report, printed) = get(&server, &TWO);
        assert_eq!(printed, "");
        assert_eq!(report["multipath"], true);
        assert_eq!(report["connections"][0]["multipath"], true);
        let paths = paths(&report);
        assert_eq!(paths[0].0, "127.0.0.2");
        assert_eq!(paths[1].0, "127.0.0.3");
        assert!(paths.iter().all(|path| path.1 > 1_000), "{paths:?}");
        assert!(report["connections"][0]["paths"][1]["rtt_s"].is_f64());
    }
}

#[test]
fn a_spent_cap_ends_its_path_and_is_reported() {
    let root = large();
    let server = Server::start(&[text(root.path()), "--scheduler", "rr"]);
    let capped = "127.0.0.3,cap=1MB";
    let (report, printed) = get(&server, &["--path", "127.0.0.2", "--path", capped]);
    let spent = "path 127.0.0.3 has reached its cap of 1000000 bytes";
    assert!(printed.contains(spent), "{printed}");
    let path = &report["connections"][0]["paths"][1];
    assert!(path["closed"].is_string(), "{report}");
    assert!(path["bytes_received"].as_u64().unwrap() < LARGE / 2);

    let file = root.path().join("copy");
    let url = server.url("large");
    let to = [
        "get",
        &url,
        "--insecure",
        "--path",
        capped,
        "-o",
        text(&file),
    ];
    let output = run(&to);
    assert_eq!(output.status.code(), Some(18));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains(spent) && printed.contains("-C -"),
        "{printed}"
    );
    assert!(!file.exists());
}

#[test]
fn a_server_without_multipath_is_used_on_one_path() {
    let root = large();
    let server = Server::start(&[text(root.path())]);
    let (report, printed) = get(&server, &TWO);
    assert_eq!(printed.lines().count(), 1, "{printed}");
    assert!(
        printed.contains("the server does not support multipath"),
        "{printed}"
    );
    assert_eq!(report["multipath"], false);
    let paths = paths(&report);
    assert_eq!(paths.len(), 1);
    assert_eq!(paths[0].0, "127.0.0.2");
}

#[test]
fn errors_name_the_invalid_path() {
    let missing = "there is no interface wwan77";
    let root = large();
    let server = Server::start(&[text(root.path()), "--profile", "multipath"]);
    let (_, printed) = get(&server, &["--path", "wwan77", "--path", "lo"]);
    assert!(printed.contains(missing), "{printed}");

    let url = server.url("large");
    let output = run(&["get", &url, "--insecure", "--json", "--path", "wwan77"]);
    assert_eq!(output.status.code(), Some(45));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains(missing), "{printed}");
    assert!(printed.contains("no path to"), "{printed}");
    assert!(printed.contains("--path"), "{printed}");

    let get = |more: &[&'static str]| [&["get", "https://h/a"], more].concat();
    fails(
        &get(&["--path", "wwan0,bakcup"]),
        2,
        &["`bakcup`", "NAME[,backup][,cap=SIZE]"],
    );
    fails(&get(&["--path", "wwan0,cap=much"]), 2, &["`much`", "10MB"]);
    fails(&get(&["--scheduler", "best"]), 2, &["best", "rr, lrf"]);
    fails(
        &get(&["--path", "lo", "--http", "2"]),
        2,
        &["--path needs HTTP/3, not HTTP/2"],
    );
}
