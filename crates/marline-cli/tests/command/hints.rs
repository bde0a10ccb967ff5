//! The advice in errors and help.

use std::fs;

use tempfile::TempDir;

use crate::{Server, fails, run, site, text};

#[test]
fn errors_of_usage_name_the_help_of_the_verb() {
    for (arguments, help) in [
        (
            &["get", "https://h/", "--frobnicate"][..],
            "see `marline get --help`",
        ),
        (
            &["lab", "run", "--frobnicate"],
            "see `marline lab run --help`",
        ),
        (&["qlog"], "see `marline qlog --help`"),
        (&["frobnicate"], "see `marline --help`"),
    ] {
        fails(arguments, 2, &[help]);
    }
}

#[test]
fn flags_of_curl_and_wget_are_answered_with_those_of_get() {
    for (flag, words) in [
        ("--no-check-certificate", "write --insecure"),
        ("--quiet", "write --silent"),
        ("--trace", "--qlog DIR"),
        ("-0", "--http1.1"),
        ("--digest", "--oauth2-bearer"),
        ("--ciphers", "newest version"),
        ("--socks5", "socks5://"),
        ("--private-key", "write --key"),
        ("--tries", "write --retry"),
    ] {
        fails(&["get", "https://h/", flag], 2, &[words, "there is no"]);
    }
}

#[test]
fn flags_of_get_that_need_another_are_refused_without_it() {
    let get = ["get", "https://h/a"];
    let split = ["--split", "1000", "-o", "/tmp/a"];
    fails(&[&get[..], &split].concat(), 2, &["--connections"]);
    fails(&[&get[..], &["--resume"]].concat(), 2, &["-o FILE"]);
    fails(
        &[&get[..], &["--resume", "-o", "-"]].concat(),
        2,
        &["-o FILE"],
    );
    fails(
        &[&get[..], &["--http", "2", "--own-sockets"]].concat(),
        2,
        &["--own-sockets", "QUIC"],
    );
}

#[test]
fn flags_of_pools_that_contradict_others_are_refused() {
    let to = ["gateway", "--to", "https://localhost"];
    for (flags, words) in [
        (
            &["--pipes", "rr", "--connections", "2"][..],
            &["--pipes", "--connections"][..],
        ),
        (&["--pipes", "rr", "--bundle"], &["--pipes", "--bundle"]),
        (&["--pipes", "fast"], &["policy of pipes", "rr", "cba"]),
        (
            &["--pipes", "rr", "--max-pipes", "65"],
            &["--max-pipes", "64"],
        ),
        (&["--max-pipes", "3"], &["--pipes"]),
        (
            &["--pipes", "rr", "--signal", "trace"],
            &["--signal", "cba"],
        ),
        (
            &["--pipes", "rr", "--kind", "php=document"],
            &["--kind", "cba"],
        ),
        (
            &["--pipes", "cba", "--kind", "php=page"],
            &["--kind", "page"],
        ),
    ] {
        fails(&[&to[..], flags].concat(), 2, words);
    }
    fails(
        &["gateway", "--proxy", "--pipes", "rr"],
        2,
        &["--proxy", "--pipes"],
    );
    let signal = ["--pipes", "cba", "--signal", "/nonexistent"];
    fails(&[&to[..], &signal].concat(), 1, &["--signal /nonexistent"]);
    let get = ["get", "https://h/a", "-o", "/tmp/a", "--pipes", "rr"];
    fails(&[&get[..], &["--split", "9"]].concat(), 2, &["--split"]);
    fails(
        &[&get[..], &["--ranges", "equal"]].concat(),
        2,
        &["--ranges"],
    );
    fails(&[&get[..], &["--http", "2"]].concat(), 2, &["needs HTTP/3"]);
}

#[test]
fn servers_listen_where_other_servers_would() {
    let root = site();
    let certificate = certificate(&["localhost", "127.0.0.1", "::1"], true);
    let cert = certificate.path().join("cert.pem");
    for (address, listening) in [
        ("localhost:0", 2),
        (":0", 1),
        ("*:0", 1),
        ("0", 1),
        ("[::]:0", 1),
    ] {
        let server = serve_at(address, &root, &certificate);
        let mut printed = server.printed.iter();
        let port = server.address.rsplit_once(':').unwrap().1.to_owned();
        assert!(printed.all(|line| !line.contains("listening")), "{address}");
        for host in ["127.0.0.1", "[::1]"] {
            for version in ["3", "2"] {
                let url = format!("https://{host}:{port}/a.txt");
                let get = ["get", &url, "--cacert", text(&cert), "--http", version];
                let output = run(&get);
                assert_eq!(
                    output.stdout, b"first",
                    "{address} {host} {version}: {output:?}"
                );
            }
        }
        let (_, rest) = server.terminate();
        let others = rest
            .lines()
            .filter(|line| line.contains("listening on"))
            .count();
        assert_eq!(others + 1, listening, "{address}: {rest}");
    }
}

#[test]
fn what_is_no_address_is_refused_wherever_one_is_taken() {
    for (arguments, flag) in [
        (&["serve", "."][..], "--listen"),
        (&["serve", "."], "--metrics"),
        (&["proxy", "--to", "http://a"], "--listen"),
        (&["gateway", "--to", "https://a"], "--listen"),
        (&["gateway", "--to", "https://a"], "--metrics"),
    ] {
        let expected = match flag {
            "--metrics" => "must be PORT, :PORT or localhost:PORT for this host alone",
            _ => "must be an address with a port, as \"127.0.0.1:4433\"",
        };
        fails(
            &[arguments, &[flag, "example.org"]].concat(),
            2,
            &[flag, expected],
        );
    }
    for address in ["9090", ":9090", "*:9090", "[::]:9090"] {
        let gateway = ["gateway", "--to", "https://a", "--listen", address];
        fails(&gateway, 2, &["--allow-remote"]);
    }
}

fn printed(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert!(output.status.success(), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_short_help_has_daily_flags_and_the_long_one_all_in_two_groups() {
    for verb in ["serve", "proxy", "gateway", "get"] {
        let short = printed(&[verb, "-h"]);
        // `get` has those of curl that are used daily.
        let most = if verb == "get" { 80 } else { 50 };
        assert!(short.lines().count() < most, "{short}");
        let long = printed(&[verb, "--help"]);
        let (daily, research) = long.split_once("Transport research:").unwrap();
        for flag in ["--cc", "--scheduler", "--set", "--qlog"] {
            let flag = format!("{flag} <");
            assert!(
                !short.contains(&flag) && !daily.contains(&flag),
                "{verb} {flag}"
            );
            assert!(research.contains(&flag), "{verb} {flag}");
        }
        assert!(
            daily.contains("Options:") && short.contains("Examples:"),
            "{verb}"
        );
    }
}

#[test]
fn help_is_a_verb() {
    for verbs in [&["get"][..], &["serve"], &["qlog", "summary"]] {
        let asked = printed(&[&["help"], verbs].concat());
        assert_eq!(asked, printed(&[verbs, &["--help"]].concat()));
    }
    #[cfg(target_os = "linux")]
    assert_eq!(
        printed(&["help", "lab", "run"]),
        printed(&["lab", "run", "--help"])
    );
    assert_eq!(printed(&["help"]), printed(&["--help"]));
    fails(
        &["help", "frobnicate"],
        2,
        &["frobnicate", "marline --help"],
    );
}

#[test]
#[cfg(target_os = "linux")]
fn a_name_like_that_of_an_experiment_suggests_it() {
    fails(
        &["lab", "run", "bundle/plan"],
        2,
        &["did you mean bundle/plain?"],
    );
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("own.toml");
    fs::write(&file, "").unwrap();
    for ending in ["", "tml", "json"] {
        let near = file.with_extension(ending);
        let meant = format!("did you mean the file {}?", file.display());
        fails(&["lab", "run", text(&near)], 2, &[&meant]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_last_paragraph_of_the_help_of_lab_run_fills_its_lines() {
    let help = String::from_utf8(run(&["lab", "run", "--help"]).stdout).unwrap();
    let (_, last) = help.trim_end().rsplit_once("\n\n").unwrap();
    assert!(last.starts_with("The table has a row"), "{last}");
    let lines: Vec<_> = last.lines().collect();
    for line in &lines[..lines.len() - 1] {
        assert!((80..=100).contains(&line.chars().count()), "{line}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn manual_pages_of_nested_verbs_are_printed() {
    for verbs in [&["lab-run"][..], &["lab", "run"]] {
        let page = run(&[&["man"], verbs].concat());
        let page = String::from_utf8(page.stdout).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        let header = format!(".TH marline-lab-run 1  \"marline {version}\"");
        assert!(page.contains(&header), "{page}");
        assert!(page.contains("shard"), "{page}");
    }
    fails(&["man", "lab", "frobnicate"], 2, &["lab frobnicate"]);
}

#[test]
#[cfg(target_os = "linux")]
fn manual_pages_of_all_verbs_are_written_into_a_directory() {
    let place = TempDir::new().unwrap();
    let output = run(&["man", "--dir", place.path().to_str().unwrap()]);
    assert!(output.status.success());
    for name in ["marline", "marline-get", "marline-lab-run"] {
        let page = fs::read_to_string(place.path().join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
    }
    fails(
        &["man", "--dir", "no such directory"],
        1,
        &["no such directory"],
    );
}

/// A certificate for these names with its key, in a directory.
fn certificate(names: &[&str], authority: bool) -> TempDir {
    let files = TempDir::new().unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = rcgen::CertificateParams::new(names).unwrap();
    if authority {
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    }
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    fs::write(files.path().join("cert.pem"), certificate.pem()).unwrap();
    fs::write(files.path().join("key.pem"), key.serialize_pem()).unwrap();
    files
}

fn serve(root: &TempDir, files: &TempDir) -> Server {
    serve_at("127.0.0.1:0", root, files)
}

fn serve_at(address: &str, root: &TempDir, files: &TempDir) -> Server {
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| files.path().join(name));
    let root = text(root.path());
    Server::start_at(address, &[root, "--cert", text(&cert), "--key", text(&key)])
}

#[test]
fn a_trusted_certificate_without_a_name_is_refused_with_how_to_make_one() {
    let root = site();
    for authority in [true, false] {
        let files = certificate(&[], authority);
        let server = serve(&root, &files);
        let cert = files.path().join("cert.pem");
        for (host, name) in [
            ("localhost", "DNS:localhost"),
            ("127.0.0.1", "IP:127.0.0.1"),
        ] {
            let url = server.url("a.txt").replace("127.0.0.1", host);
            for version in ["3", "2"] {
                fails(
                    &["get", &url, "--cacert", text(&cert), "--http", version],
                    60,
                    &[
                        &format!("no name for {host}"),
                        &format!("-addext subjectAltName={name}"),
                    ],
                );
            }
        }
    }
}

#[test]
fn an_unknown_certificate_is_called_not_trusted() {
    let root = site();
    let other = certificate(&["127.0.0.1"], true);
    let cert = other.path().join("cert.pem");
    for authority in [true, false] {
        let files = certificate(&["127.0.0.1"], authority);
        let server = serve(&root, &files);
        let url = server.url("a.txt");
        for version in ["3", "2"] {
            let get = ["get", &url, "--http", version, "--cacert", text(&cert)];
            fails(&get, 60, &["is not trusted", "not among the trusted"]);
            let printed = String::from_utf8(run(&get).stderr).unwrap();
            assert!(!printed.contains("Other"), "{printed}");
        }
    }
}

#[test]
fn what_a_terminal_would_obey_is_escaped_in_all_output() {
    let directory = TempDir::new().unwrap();
    let evil = "\u{1b}[2J\u{9b}31m\u{202e}";
    let scenario =
        "title = \"\\u001b[2J\\u009b31m\\u202e\"\nlink = \"lte-a\"\n[workload]\nobjects = '1MB'\n";
    fs::write(directory.path().join("evil.toml"), scenario).unwrap();
    let list = ["lab", "list", "--experiments", text(directory.path())];
    for arguments in [&list[..], &[&list[..], &["--json"]].concat()] {
        let output = run(arguments);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("\\u001b[2J\\u009b31m"), "{printed:?}");
        assert!(printed.chars().all(|c| c == '\n' || !c.is_control()));
        assert!(!printed.contains('\u{202e}'), "{printed:?}");
    }
    let path = directory.path().join(format!("{evil}\n.toml"));
    fails(
        &["lab", "run", text(&path)],
        2,
        &["\\u001b[2J\\u009b31m\\u202e\\u000a"],
    );
}

#[test]
fn unknown_names_are_answered_with_the_nearest_and_never_with_all() {
    let root = TempDir::new().unwrap();
    let file = |name: &str, content: &str| {
        let path = root.path().join(name);
        fs::write(&path, content).unwrap();
        text(&path).to_owned()
    };
    let near = file("near.toml", "dir = '.'\nidle-timout = '1s'\n");
    let far = file("far.toml", "dir = '.'\nfrobnicate = 1\n");
    let inside = file("inside.toml", "dir = '.'\n[http]\ntimeout = '1s'\n");
    for (arguments, words) in [
        (&["serve", ".", "--lissten", ":0"][..], "--listen?"),
        (&["serve", ".", "--tls", "1.3"], "--tls-min?"),
        (&["get", "https://h/", "--max-tiem", "3"], "--max-time?"),
        (&["get", "https://h/", "--frobnicate"], "the nearest of "),
        (&["proxy", "--too", "http://a"], "--to?"),
        (&["lab", "run", "demo/page", "--repeat", "3"], "--repeats?"),
        (&["lab", "rum"], "unknown verb \"rum\"; did you mean run?"),
        (&["srve"], "unknown verb \"srve\"; did you mean serve?"),
        (
            &["serve", ".", "--set", "recieve_window=1MB"],
            "receive_window?",
        ),
        (&["serve", ".", "--set", "frobnicate=1"], "the nearest of "),
        (&["serve", ".", "--cc", "cubci"], "did you mean cubic?"),
        (
            &["serve", "--config", &near],
            "did you mean max_idle_timeout?",
        ),
        (&["serve", "--config", &far], "the nearest of "),
        (&["serve", "--config", &inside], "timeout"),
        (
            &["lab", "link", "--link", "los=1%", "--", "true"],
            "did you mean loss?",
        ),
        (
            &["lab", "link", "--link", "frobnicate=1", "--", "true"],
            "the nearest of ",
        ),
    ] {
        let output = run(arguments);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(words), "`{words}` in {printed}");
        assert!(printed.len() < 400, "{printed}");
        assert!(!printed.contains("--insecure"), "{printed}");
    }
}

#[test]
fn a_flag_of_proxy_that_serve_has_not_is_named_with_its_verb() {
    let words = ["there is no --to", "`marline proxy --to URL`"];
    fails(&["serve", "--to", "http://localhost:1", "."], 2, &words);
    let words = ["ftp://localhost", "its scheme", "write http://HOST:PORT"];
    fails(&["proxy", "--to", "ftp://localhost"], 2, &words);
}

#[test]
fn top_says_that_it_takes_an_address_and_no_url() {
    for (url, words) in [
        ("http://127.0.0.1:9100/metrics", "write 127.0.0.1:9100"),
        ("https://example.org", "write 127.0.0.1:9090"),
    ] {
        fails(&["top", url], 2, &["not a URL", words]);
    }
}
