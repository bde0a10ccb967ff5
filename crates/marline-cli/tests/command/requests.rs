//! `marline get` with curl's flags about requests, against a server that scripts its responses.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use tempfile::TempDir;

use crate::{fails, marline, run, text};

/// A request that a server has read.
#[derive(Debug)]
struct Asked {
    line: String,
    /// In lower case.
    fields: Vec<String>,
    content: Vec<u8>,
}

impl Asked {
    fn has(&self, field: &str) -> bool {
        self.fields.iter().any(|known| known == field)
    }

    fn names(&self, name: &str) -> bool {
        let prefix = format!("{name}:");
        self.fields.iter().any(|known| known.starts_with(&prefix))
    }
}

/// A server of cleartext HTTP/1.1 whose responses `respond` decides.
struct Scripted {
    base: String,
    asked: Receiver<Asked>,
}

impl Scripted {
    fn start(respond: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let (sender, asked) = channel();
        let respond = std::sync::Arc::new(respond);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (sender, respond) = (sender.clone(), respond.clone());
                let stream = stream.unwrap();
                thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(one) = read(&mut reader) {
                        let answer = respond(&one);
                        sender.send(one).unwrap();
                        let is_last = answer.is_empty()
                            || String::from_utf8_lossy(&answer).contains("connection: close");
                        if (&stream).write_all(&answer).is_err() || is_last {
                            return;
                        }
                    }
                });
            }
        });
        Self { base, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    fn next(&self) -> Asked {
        self.asked.recv().unwrap()
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        lines.push(line.to_owned());
    }
    let line = lines.remove(0);
    let fields: Vec<_> = lines.iter().map(|line| line.to_ascii_lowercase()).collect();
    let length = fields
        .iter()
        .find_map(|field| field.strip_prefix("content-length: "));
    let mut content = Vec::new();
    if let Some(length) = length {
        content.resize(length.parse().unwrap(), 0);
        reader.read_exact(&mut content).unwrap();
    } else if fields
        .iter()
        .any(|field| field == "transfer-encoding: chunked")
    {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size).unwrap();
            let size = usize::from_str_radix(size.trim(), 16).unwrap();
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk).unwrap();
            content.extend_from_slice(&chunk[..size]);
            if size == 0 {
                break;
            }
        }
    }
    Some(Asked {
        line,
        fields,
        content,
    })
}

fn answer(status: &str, fields: &[&str], content: &[u8]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", content.len());
    for field in fields {
        head.push_str(field);
        head.push_str("\r\n");
    }
    [head.as_bytes(), b"\r\n", content].concat()
}

fn ok(_: &Asked) -> Vec<u8> {
    answer("200 OK", &[], b"done")
}

#[test]
fn content_and_fields_are_sent_as_by_curl() {
    let server = Scripted::start(ok);
    let url = server.url("/x");
    for (flags, line, fields, content) in [
        (
            &["-d", "a=b", "-d", "c"][..],
            "POST /x HTTP/1.1",
            &[
                "content-type: application/x-www-form-urlencoded",
                "content-length: 5",
            ][..],
            "a=b&c",
        ),
        (
            &["--json", r#"{"a":1}"#],
            "POST /x HTTP/1.1",
            &["content-type: application/json", "accept: application/json"],
            r#"{"a":1}"#,
        ),
        (
            &["-G", "-d", "a=b"],
            "GET /x?a=b HTTP/1.1",
            &["accept: */*"],
            "",
        ),
        (&["-X", "DELETE"], "DELETE /x HTTP/1.1", &[], ""),
        (
            &["-u", "me:secret", "-A", "own/1", "-e", "http://r/"],
            "GET /x HTTP/1.1",
            &[
                "authorization: basic bwu6c2vjcmv0",
                "user-agent: own/1",
                "referer: http://r/",
            ],
            "",
        ),
        (
            &["-b", "a=b; c=d", "-r", "0-9"],
            "GET /x HTTP/1.1",
            &["cookie: a=b; c=d", "range: bytes=0-9"],
            "",
        ),
        (
            &["-H", "X-Own: 1", "-H", "Accept:"],
            "GET /x HTTP/1.1",
            &["x-own: 1"],
            "",
        ),
    ] {
        let output = run(&[&["get", &url][..], flags].concat());
        assert_eq!(output.stdout, b"done", "{flags:?}: {output:?}");
        let asked = server.next();
        assert_eq!(asked.line, line);
        for field in fields {
            assert!(asked.has(field), "{field} in {asked:?}");
        }
        assert_eq!(String::from_utf8(asked.content).unwrap(), content);
    }
    let output = run(&["get", &url, "-H", "Accept:"]);
    assert!(output.status.success());
    assert!(!server.next().names("accept"));
}

#[test]
fn files_and_standard_input_are_streamed() {
    let server = Scripted::start(ok);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("in.txt");
    fs::write(&path, vec![b'x'; 300_000]).unwrap();
    let (file, url) = (text(&path), server.url("/dir/"));
    assert!(run(&["get", "-T", file, &url]).status.success());
    let asked = server.next();
    assert_eq!(asked.line, "PUT /dir/in.txt HTTP/1.1");
    assert_eq!(asked.content.len(), 300_000);
    let form = format!("f=@{file};type=text/x");
    assert!(
        run(&["get", "-F", "a=b", "-F", &form, &url])
            .status
            .success()
    );
    let content = String::from_utf8(server.next().content).unwrap();
    for part in [
        "name=\"a\"\r\n\r\nb\r\n",
        "filename=\"in.txt\"\r\nContent-Type: text/x\r\n\r\nxxx",
    ] {
        assert!(content.contains(part), "{part}");
    }
    let mut command = marline(&["get", "-T", "-", &url]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"piped").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(server.next().content, b"piped");
    fails(&["get", "-T", "/none/such", &url], 26, &["/none/such"]);
}

#[test]
fn redirects_are_followed_and_other_servers_get_no_credentials() {
    let other = Scripted::start(ok);
    let location = format!("location: {}", other.url("/there"));
    let server = Scripted::start(move |asked| match asked.line.split(' ').nth(1) {
        Some("/loop") => answer("302 Found", &["location: loop"], b"moved"),
        Some("/away") => answer("307 Temporary Redirect", &[&location], b""),
        Some("/post") => answer("303 See Other", &["location: /done"], b""),
        Some("/moved") => answer("301 Moved Permanently", &["location: /done"], b""),
        _ => answer("200 OK", &[], b"here"),
    });
    let post = server.url("/post");
    let output = run(&["get", "-L", "-d", "a=b", &post, "-w", "|%{num_redirects}"]);
    assert_eq!(output.stdout, b"here|1", "{output:?}");
    assert_eq!(server.next().content, b"a=b");
    let second = server.next();
    assert_eq!(
        (second.line.as_str(), second.content.len()),
        ("GET /done HTTP/1.1", 0)
    );
    // As curl does, another method keeps its name, and loses content of -d where POST does.
    let moved = server.url("/moved");
    for (more, content) in [(&[][..], &b""[..]), (&["--post301"], b"a=b")] {
        run(&[&["get", "-L", "-X", "PUT", "-d", "a=b", &moved], more].concat());
        assert_eq!(server.next().content, b"a=b");
        let second = server.next();
        assert_eq!(second.line, "PUT /done HTTP/1.1");
        assert_eq!(second.content, content, "{more:?}");
    }
    let away = server.url("/away");
    let get = ["get", "-L", &away, "-u", "me:secret", "-H", "Cookie: a=b"];
    for (more, keeps) in [(&[][..], false), (&["--location-trusted"], true)] {
        let output = run(&[&get[..], more].concat());
        assert_eq!(output.stdout, b"done", "{output:?}");
        assert!(server.next().names("authorization"));
        let asked = other.next();
        assert_eq!(asked.names("authorization"), keeps);
        assert_eq!(asked.names("cookie"), keeps);
    }
    let looping = server.url("/loop");
    fails(
        &["get", "-L", "--max-redirs", "3", &looping],
        47,
        &["3 redirects"],
    );
    fails(&["get", &looping, "--fail"], 22, &["302"]);
    let output = run(&["get", "--proto", "=https", &looping]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(message.matches(&looping).count(), 1, "{message}");
}

/// While `get` waits for the text of `-w`, a signal ends it.
#[cfg(unix)]
#[test]
fn a_pipe_for_write_out_that_stays_silent_does_not_keep_the_command() {
    let server = Scripted::start(ok);
    let directory = TempDir::new().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let format = format!("@{}", text(&pipe));
    let mut get = marline(&["get", &server.url("/"), "-w", &format])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut content = [0; 4];
    get.stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut content)
        .unwrap();
    assert_eq!(&content, b"done");
    // Opened by the command, and by nobody who writes: the pipe opens when both ends do.
    let _silent = fs::File::options().write(true).open(&pipe).unwrap();
    let kill = std::process::Command::new("kill")
        .arg(get.id().to_string())
        .status();
    assert!(kill.unwrap().success());
    assert!(!get.wait().unwrap().success());
}

#[test]
fn cookies_are_kept_in_a_file_between_runs() {
    let server = Scripted::start(|_| {
        answer(
            "200 OK",
            &["set-cookie: taste=sweet; Path=/; Max-Age=1000"],
            b"",
        )
    });
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("jar");
    let (jar, url) = (text(&path), server.url("/"));
    for expected in [false, true] {
        let output = run(&["get", &url, "-b", jar, "-c", jar]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(server.next().has("cookie: taste=sweet"), expected);
    }
    let written = fs::read_to_string(&path).unwrap();
    assert!(
        written.contains("127.0.0.1\tFALSE\t/\tFALSE\t"),
        "{written}"
    );
}

#[test]
fn what_may_pass_is_tried_again() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let server = Scripted::start(move |_| {
        match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 3 {
            2 => answer("200 OK", &[], b"done"),
            _ => answer("503 Service Unavailable", &["retry-after: 0"], b"later"),
        }
    });
    let url = server.url("/");
    let output = run(&["get", &url, "--retry", "2"]);
    assert_eq!(output.stdout, b"done", "{output:?}");
    let output = run(&["get", &url, "--retry", "1"]);
    assert_eq!(
        (&output.stdout[..], output.status.code()),
        (&b"later"[..], Some(22))
    );
}

/// A file starts over; a stream already has the beginning.
#[test]
fn content_that_breaks_off_is_repeated_only_where_it_can_be_replaced() {
    let count = std::sync::atomic::AtomicU32::new(0);
    let server = Scripted::start(move |_| {
        match count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2 {
            0 => b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\nwh".to_vec(),
            _ => answer("200 OK", &[], b"whole"),
        }
    });
    let url = server.url("/");
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    let again = ["get", &url, "--retry", "1", "--retry-all-errors"];
    let to_file = [&again[..], &["-o", text(&file)]].concat();
    let output = run(&to_file);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(&file).unwrap(), b"whole");
    let to_stream = [&again[..], &["-o", "/dev/stdout"]].concat();
    for arguments in [&again[..], &to_stream] {
        let output = run(arguments);
        assert_eq!(output.stdout, b"wh", "{output:?}");
        assert_eq!(output.status.code(), Some(18), "{output:?}");
        // The next is whole.
        run(&["get", &url]);
    }
}

#[test]
fn content_of_errors_is_written_unless_it_is_not_wanted() {
    let server = Scripted::start(|_| answer("404 Not Found", &["x-own: 1"], b"no such page"));
    let url = server.url("/");
    for (flags, printed) in [
        (&[][..], "no such page"),
        (&["--fail-with-body"], "no such page"),
        (&["-f"], ""),
        (
            &["-i"],
            "HTTP/1.1 404 Not Found\r\ncontent-length: 12\r\nx-own: 1\r\n\r\nno such page",
        ),
    ] {
        let output = run(&[&["get", &url][..], flags].concat());
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            printed,
            "{flags:?}"
        );
        assert_eq!(output.status.code(), Some(22));
    }
    let output = run(&["get", &url, "-s"]);
    assert!(output.stderr.is_empty(), "{output:?}");
    let output = run(&[
        "get",
        &url,
        "-sS",
        "-v",
        "-w",
        "%{http_code} %header{x-own} %{exitcode}\\n",
    ]);
    assert!(output.stdout.ends_with(b"404 1 22\n"), "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    for line in ["> GET / HTTP/1.1\n", "< HTTP/1.1 404", "< x-own: 1\n"] {
        assert!(printed.contains(line), "{line} in {printed}");
    }
}

#[test]
fn flags_come_from_files_and_names_from_servers() {
    let server = Scripted::start(|_| {
        answer(
            "200 OK",
            &["content-disposition: attachment; filename=\"../given\""],
            b"named",
        )
    });
    let directory = TempDir::new().unwrap();
    let config = directory.path().join("config");
    fs::write(
        &config,
        format!(
            "url = \"{}\"\nheader = \"X-Own: 1\"\n-O\nremote-header-name\n",
            server.url("/x")
        ),
    )
    .unwrap();
    let output = marline(&["get", "-K", text(&config)])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(fs::read(directory.path().join("given")).unwrap(), b"named");
    assert!(server.next().has("x-own: 1"));
    fails(&["get", "-K", "/none/such"], 26, &["/none/such"]);
    fs::write(&config, "silent\nmax-tme = 5\n").unwrap();
    let nearest = format!(
        "{}:2: there is no --max-tme; did you mean --max-time?",
        text(&config)
    );
    fails(&["get", "-K", text(&config)], 2, &[&nearest]);
}

#[test]
fn slow_and_malformed_transfers_end_with_curls_statuses() {
    let server = Scripted::start(|asked| match asked.line.contains("/none") {
        true => Vec::new(),
        false => answer("200 OK", &["content-encoding: gzip"], b"not gzip at all"),
    });
    fails(&["get", "--compressed", &server.url("/")], 61, &["decoded"]);
    fails(&["get", &server.url("/none")], 52, &["no response"]);
    let stalling = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", stalling.local_addr().unwrap());
    thread::spawn(move || {
        for stream in stalling.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx")
                .unwrap();
            thread::spawn(move || stream.read(&mut [0; 1]));
        }
    });
    let output = run(&["get", &url, "-y", "1", "-Y", "100"]);
    assert_eq!(output.status.code(), Some(28), "{output:?}");
}
