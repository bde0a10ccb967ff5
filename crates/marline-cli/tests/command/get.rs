//! Common first attempts with `marline get`.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use tempfile::TempDir;

use crate::{Server, fails, marline, run, site, text};

#[test]
fn a_dash_stands_for_standard_output() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let out = TempDir::new().unwrap();
    let url = server.url("a.txt");
    let output = marline(&["get", &url, "--insecure", "-o", "-"])
        .current_dir(out.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout, b"first");
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0, "no file");
    fails(&["get", &url, "-o", "-", "--json"], 2, &["--json"]);
    fails(&["get", &url, "-o", "-", "--bundle"], 2, &["-o FILE"]);
    fails(&["get", &url, "-o", "-", "--split", "1"], 2, &["-o FILE"]);
}

#[test]
fn a_self_signed_authority_is_trusted_as_the_certificate_of_its_server() {
    let root = site();
    let files = TempDir::new().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let (cert, private) = (files.path().join("cert.pem"), files.path().join("key.pem"));
    fs::write(&cert, certificate.pem()).unwrap();
    fs::write(&private, key.serialize_pem()).unwrap();
    let arguments = [
        text(root.path()),
        "--cert",
        text(&cert),
        "--key",
        text(&private),
    ];
    let server = Server::start(&arguments);
    for version in ["3", "2"] {
        let url = server.url("a.txt");
        let output = run(&["get", &url, "--cacert", text(&cert), "--http", version]);
        assert!(output.status.success(), "{output:?}");
        assert_eq!(output.stdout, b"first");
    }
}

/// A port whose TCP connections end at `server`, and whose UDP port does not answer.
fn tcp_only(server: &str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = server.to_owned();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(&server).unwrap());
            let backwards = (server.try_clone().unwrap(), client.try_clone().unwrap());
            for (mut from, mut to) in [(client, server), backwards] {
                thread::spawn(move || io::copy(&mut from, &mut to));
            }
        }
    });
    address
}

#[test]
fn a_server_without_http3_is_asked_over_http2() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = format!("https://{}/a.txt", tcp_only(&server.address));
    let output = run(&["get", &url, "--insecure"]);
    assert_eq!(output.stdout, b"first", "{output:?}");
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("HTTP/2 was used"), "{printed}");
}

#[test]
fn a_server_that_never_answers_is_given_up_at_the_time_limits() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let get = ["get", &url, "--http", "1.1c"];
    for (flag, words) in [
        ("--max-time", "after 0.2 s, the time limit"),
        ("--stall-timeout", "nothing arrived for 0.2 s"),
    ] {
        for time in ["200ms", "0.2"] {
            fails(&[&get[..], &[flag, time]].concat(), 28, &[words]);
        }
    }
    fails(&["get", &url, "--max-time", "soon"], 2, &["--max-time"]);
}

#[test]
fn a_flag_that_does_not_exist_never_suggests_to_trust_everyone() {
    for flag in ["--insecur", "--insecured"] {
        let output = run(&["get", "https://h/", flag]);
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(!printed.contains("--insecure'"), "{printed}");
    }
}

#[test]
fn a_host_that_is_none_is_named_in_the_error() {
    let root = site();
    let server = Server::start(&[text(root.path())]);
    let url = server.url("a.txt");
    for version in ["3", "2", "1.1"] {
        let arguments = ["get", &url, "--insecure", "--http", version, "--header"];
        fails(
            &[&arguments[..], &["Host: a/b"]].concat(),
            43,
            &["host", "--header"],
        );
        let output = run(&[&arguments[..], &["Host: example.org"]].concat());
        assert_eq!(output.stdout, b"first", "{output:?}");
    }
}

/// Starts a server of some files over all versions of HTTP.
fn serve(root: &TempDir) -> Server {
    Server::start(&[text(root.path()), "--cleartext"])
}

#[test]
fn several_objects_follow_each_other_on_standard_output() {
    let root = site();
    fs::write(root.path().join("large"), vec![b'x'; 1 << 20]).unwrap();
    let server = serve(&root);
    let expected = [b"first", &vec![b'x'; 1 << 20][..], b"second", b"first"].concat();
    let names = ["a.txt", "large", "b.txt", "a.txt"];
    for version in ["3", "2", "1.1"] {
        let urls = names.map(|name| server.url(name));
        let mut arguments = vec!["get", "--insecure", "--http", version];
        arguments.extend(urls.iter().map(String::as_str));
        for more in [&[][..], &["--connections", "3"], &["-o", "-"]] {
            let output = run(&[&arguments[..], more].concat());
            assert!(output.status.success(), "{:?}", output.stderr);
            assert!(output.stdout == expected, "{version} {more:?}");
        }
    }
    let urls = [server.url("a.txt"), server.url("none"), server.url("b.txt")];
    let [first, missing, last] = &urls;
    let output = run(&["get", first, missing, last, "--insecure", "--fail"]);
    assert_eq!(output.stdout, b"firstsecond", "others go on");
    assert_eq!(output.status.code(), Some(22));
}

#[test]
fn remote_names_are_those_of_files_in_the_present_directory() {
    let root = site();
    let server = serve(&root);
    let out = TempDir::new().unwrap();
    let (a, b) = (server.url("a.txt"), server.url("b.txt"));
    for flag in ["-O", "--remote-name"] {
        let output = marline(&["get", &a, &b, "--insecure", flag])
            .current_dir(out.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(fs::read(out.path().join("a.txt")).unwrap(), b"first");
        assert_eq!(fs::read(out.path().join("b.txt")).unwrap(), b"second");
    }
    fails(&["get", &a, "-O", "-o", "file"], 2, &["--output"]);
}

#[test]
fn objects_larger_than_the_limit_are_refused_with_the_status_of_curl() {
    let root = site();
    fs::write(root.path().join("large"), vec![b'x'; 10_000]).unwrap();
    let server = serve(&root);
    let out = TempDir::new().unwrap();
    let file = out.path().join("file");
    for version in ["3", "2", "1.1"] {
        let url = server.url("large");
        let get = [
            "get",
            &url,
            "--insecure",
            "--http",
            version,
            "-o",
            text(&file),
        ];
        for limit in ["9999", "9K", "1"] {
            let arguments = [&get[..], &["--max-filesize", limit]].concat();
            fails(&arguments, 63, &["--max-filesize", "10000"]);
            assert!(!file.exists());
        }
        let several = [
            "--connections",
            "2",
            "--split",
            "1000",
            "--max-filesize",
            "9999",
        ];
        fails(&[&get[..], &several].concat(), 63, &["--max-filesize"]);
        for limit in ["10000", "10K", "1M", "0"] {
            let arguments = [&get[..], &["--max-filesize", limit]].concat();
            let output = run(&arguments);
            assert!(output.status.success(), "{limit}: {output:?}");
            fs::remove_file(&file).unwrap();
        }
    }
    fails(
        &["get", "https://h/", "--max-filesize", "1.5x"],
        2,
        &["K, M, G"],
    );
}

/// A server of HTTP/1.1 that answers each connection with `response`, whose end it does not announce.
fn answering(response: &'static [u8]) -> String {
    use std::io::{Read, Write};

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let mut client = client.unwrap();
            let _ = client.read(&mut [0; 4096]);
            let _ = client.write_all(response);
            while client.write_all(&[b'x'; 4096]).is_ok() {}
        }
    });
    format!("http://{address}/")
}

#[test]
fn content_without_an_announced_size_ends_at_the_limit() {
    for response in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"HTTP/1.1 404 Not Found\r\n\r\n",
    ] {
        let url = answering(response);
        let get = ["get", &url, "--http", "1.1c", "--max-filesize", "100K"];
        fails(&[&get[..], &["--json"]].concat(), 63, &["102400"]);
        let output = run(&get);
        assert!(output.stdout.len() <= 100 << 10, "{}", output.stdout.len());
    }
}

#[cfg(unix)]
#[test]
fn what_a_file_is_stays_over_every_version() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let root = site();
    fs::write(root.path().join("large"), vec![b'x'; 1 << 20]).unwrap();
    let server = serve(&root);
    let url = server.url("large");
    for (version, more) in [
        ("1.1", &[][..]),
        ("2", &[]),
        ("3", &[]),
        ("3", &["--resume"]),
        ("1.1", &["--connections", "3", "--split", "10000"]),
        ("3", &["--connections", "3", "--split", "10000"]),
    ] {
        let out = TempDir::new().unwrap();
        let [target, link] = ["target", "link"].map(|name| out.path().join(name));
        fs::write(&target, "old").unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o600)).unwrap();
        symlink("target", &link).unwrap();
        let get = [
            "get",
            &url,
            "--insecure",
            "--http",
            version,
            "-o",
            text(&link),
        ];
        let output = run(&[&get[..], more].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let known = fs::symlink_metadata(&target).unwrap();
        assert_eq!(
            (known.len(), known.permissions().mode() & 0o777),
            (1 << 20, 0o600)
        );
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 2);
    }
}

#[test]
fn failures_have_the_exit_statuses_of_curl() {
    let root = site();
    let server = serve(&root);
    let closed = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let out = TempDir::new().unwrap();
    let missing = out.path().join("none/file");
    let url = server.url("a.txt");
    let closed = format!("https://{closed}/");
    for (arguments, status) in [
        (&[&*server.url("none"), "--insecure"][..], 22),
        (&["https://none.invalid/"], 6),
        (&[&closed, "--http", "2"], 7),
        (&[&url], 60),
        (&[&url, "--cacert", text(&missing)], 77),
        (&[&url, "--insecure", "-o", text(&missing)], 23),
    ] {
        let output = run(&[&["get"], arguments].concat());
        assert_eq!(output.status.code(), Some(status), "{output:?}");
    }
}

#[test]
fn addresses_that_no_server_has_are_refused_at_once() {
    for (host, words) in [
        ("127.0.0.1:0", "port 0"),
        ("0.0.0.0:443", "127.0.0.1"),
        ("[::]:443", "[::1]"),
        ("224.0.0.1", "multicast"),
        ("[ff02::1]", "multicast"),
        ("255.255.255.255", "broadcast"),
        ("[fe80::1]", "%25eth0"),
    ] {
        let url = format!("https://{host}/");
        for version in [
            &[][..],
            &["--http", "3"],
            &["--http", "2"],
            &["--http", "1.1"],
        ] {
            // The limit would have another status.
            let get = ["get", &url, "--max-time", "5"];
            fails(&[&get[..], version].concat(), 7, &[words]);
        }
    }
    fails(
        &["get", "https://[fe80::1%25none-such]/"],
        6,
        &["none-such"],
    );
    fails(&["get", "https://[::1%25lo]/"], 3, &["link-local"]);
}
