//! The access log's records of requests that the server refuses.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, marline, run, text};

const VERSIONS: [&str; 3] = ["1.1", "2", "3"];

struct Files(TempDir);

impl Files {
    fn new(config: &str) -> Self {
        let files = Self(TempDir::new().unwrap());
        fs::write(files.path("a.txt"), "first").unwrap();
        fs::write(files.path(".hidden"), "secret").unwrap();
        // A hash of no password.
        fs::write(
            files.path("users"),
            "ana:$2y$05$c4WoMPo3SXsafkva.HHa6uXQZWr7oboPiC2bT/r7q1BB8I2s0BRqC\n",
        )
        .unwrap();
        let config =
            format!("access_log = 'log'\nstate = 'state'\naccess_log_format = 'json'\n{config}");
        fs::write(files.path("server.toml"), config).unwrap();
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn start(&self, verb: &str) -> Server {
        let config = self.path("server.toml");
        let mut command = marline(&[verb, "--listen", "127.0.0.1:0", "--config", text(&config)]);
        Server::spawn(command.stdout(Stdio::null()))
    }

    /// The lines of the log once the server has ended.
    fn lines(&self, server: Server) -> Vec<Value> {
        let (status, _) = server.terminate();
        assert_eq!(status, 0);
        let log = fs::read_to_string(self.path("log")).unwrap();
        let lines = log.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }
}

/// Requests the URL, which names a host that `server` stands for.
fn request(server: &Server, version: &str, url: &str, more: &[&str]) {
    let to = format!("::{}", server.address);
    let arguments = [
        "get",
        url,
        "--insecure",
        "--http",
        version,
        "--connect-to",
        &to,
    ];
    run(&[&arguments[..], more].concat());
}

/// A line without what its version and its time differ in.
fn of(line: &Value) -> [Value; 4] {
    ["status", "site", "route", "reason"].map(|field| line[field].clone())
}

#[test]
fn the_log_names_site_route_and_reason_in_each_version() {
    let files = Files::new(
        "[[site]]\nnames = 'a.test'\ndir = '.'\n\
         [[site.route]]\npath = '/net'\ndeny = '127.0.0.0/8'\nrespond = 'no'\n\
         [[site.route]]\npath = '/password'\nbasic_auth = 'users'\nrespond = 'no'\n\
         [[site.route]]\npath = '/small'\nmethod = 'POST'\nmax_body = '1B'\nrespond = 'no'\n\
         [[site.route]]\npath = ['/often', '/rated']\nrate = '1/h'\nburst = 1\nrespond = 'yes'\n\
         [[site]]\nnames = 'b.test'\n\
         [[site.route]]\npath = '/x'\nstatus = 404\n",
    );
    let server = files.start("serve");
    let content = ["-d", "content"];
    let cases: [(&str, &[&str], Value); 11] = [
        (
            "https://a.test/net",
            &[],
            serde_json::json!([403, "a.test", "/net", "network"]),
        ),
        (
            "https://a.test/password",
            &[],
            serde_json::json!([401, "a.test", "/password", "no_password"]),
        ),
        (
            "https://a.test/small",
            &content,
            serde_json::json!([413, "a.test", "POST /small", "content_too_large"]),
        ),
        (
            "https://a.test/none",
            &[],
            serde_json::json!([404, "a.test", null, "no_file"]),
        ),
        (
            "https://a.test/.hidden",
            &[],
            serde_json::json!([404, "a.test", null, "dot_file"]),
        ),
        (
            "https://a.test/a.txt",
            &content,
            serde_json::json!([405, "a.test", null, "method"]),
        ),
        (
            "https://a.test/a.txt",
            &["-H", "Range: bytes=99-"],
            serde_json::json!([416, "a.test", null, "range"]),
        ),
        (
            "https://b.test/",
            &[],
            serde_json::json!([404, "b.test", null, "no_route"]),
        ),
        // The answer of a route is none of the server itself.
        (
            "https://b.test/x",
            &[],
            serde_json::json!([404, "b.test", "/x", null]),
        ),
        (
            "https://c.test/",
            &[],
            serde_json::json!([421, null, null, "unknown_site"]),
        ),
        (
            "https://a.test/a.txt",
            &[],
            serde_json::json!([200, "a.test", null, null]),
        ),
    ];
    request(&server, "1.1", "https://a.test/rated", &[]);
    for version in VERSIONS {
        for (url, more, _) in &cases {
            request(&server, version, url, more);
        }
        request(&server, version, "https://a.test/often", &[]);
    }
    let lines = files.lines(server);
    let expected: Vec<&Value> = cases.iter().map(|(_, _, expected)| expected).collect();
    let rated = serde_json::json!([429, "a.test", "/often, /rated", "rate"]);
    let mut seen = lines[1..].iter();
    for version in VERSIONS {
        for expected in expected.iter().copied().chain([&rated]) {
            let line = seen.next().unwrap();
            assert_eq!(line["http_version"], version);
            assert_eq!(
                serde_json::json!(of(line)),
                *expected,
                "HTTP/{version}: {line}"
            );
        }
    }
    assert!(seen.next().is_none());
}

#[test]
fn the_log_of_a_proxy_names_the_reason() {
    let files = Files::new("[proxy]\nto = 'http://127.0.0.1:1'\n");
    let server = files.start("proxy");
    let via = format!("Via: {}", ["1.1 a"; 100].join(", "));
    for version in VERSIONS {
        request(&server, version, "https://a.test/", &[]);
        request(&server, version, "https://a.test/", &["-H", &via]);
    }
    for lines in files.lines(server).chunks(2) {
        let [unreached, refused] = lines else {
            panic!("{lines:?}")
        };
        assert_eq!(
            unreached["reason"], "destination_unavailable",
            "{unreached}"
        );
        assert_eq!(unreached["site"], "default");
        assert_eq!(unreached["upstream"], "http://127.0.0.1:1");
        assert_eq!(refused["reason"], "proxy_loop_detected", "{refused}");
        assert_eq!(refused["status"], 502);
        assert!(
            refused.get("upstream").is_none(),
            "none was asked: {refused}"
        );
    }
}

#[test]
fn unreadable_requests_have_a_reason() {
    use std::io::{Read, Write};

    let files = Files::new("dir = '.'\ncleartext = true\n");
    let server = files.start("serve");
    let long = format!(
        "GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n",
        "y".repeat(100_000)
    );
    for text in [
        "GET / HTTP/1.1\r\nhost: a b\r\n\r\n",
        "nonsense\r\n\r\n",
        &long,
    ] {
        let mut stream = std::net::TcpStream::connect(&server.address).unwrap();
        // The server may have ended it already.
        let _ = stream.write_all(text.as_bytes());
        let _ = stream.read_to_end(&mut Vec::new());
    }
    let lines = files.lines(server);
    let reasons: Vec<_> = lines
        .iter()
        .map(|line| line["reason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["malformed", "malformed", "header_too_large"]);
}

#[test]
fn what_is_not_there_is_answered_with_a_line_of_text() {
    let files = Files::new("dir = '.'\n");
    let server = files.start("serve");
    for version in VERSIONS {
        let url = server.url("none");
        let output = run(&["get", &url, "--insecure", "--http", version]);
        assert_eq!(output.stdout, b"Not found\n", "HTTP/{version}");
    }
}
