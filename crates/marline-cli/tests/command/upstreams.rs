//! `proxy` before `serve`.

use std::process::Stdio;

use tempfile::TempDir;

use crate::{Server, fails, marline, run, site, text};

/// A `marline proxy` before the application at `url`.
fn proxy(files: &TempDir, url: &str) -> Server {
    let config = files.path().join("proxy.toml");
    let written = format!("[proxy]\nto = {url:?}\n[proxy.tls]\ninsecure = true\n");
    std::fs::write(&config, written).unwrap();
    let mut command = marline(&[
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--config",
        text(&config),
    ]);
    Server::spawn(command.stdout(Stdio::null()))
}

#[test]
fn a_proxy_reaches_a_server_over_http3_also_after_it_was_killed() {
    let (root, state, files) = (site(), TempDir::new().unwrap(), TempDir::new().unwrap());
    let arguments = [text(root.path()), "--state", text(state.path())];
    let mut application = Server::start_to_be_replaced(&arguments);
    let proxy = proxy(&files, &format!("h3://{}", application.address));
    let fetched = |version: &str| {
        let output = run(&["get", "--insecure", "--http", version, &proxy.url("a.txt")]);
        assert_eq!(output.stdout, b"first", "{version}: {output:?}");
    };
    for version in ["1.1", "2", "3"] {
        fetched(version);
    }
    let address = application.address.clone();
    application.child.kill().unwrap();
    application.child.wait().unwrap();
    let _restarted = Server::start_at(&address, &arguments);
    for version in ["3", "2"] {
        fetched(version);
    }
}

#[test]
fn settings_that_cannot_work_are_named_with_their_line_and_what_to_write() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("site.toml");
    let to = "[[site]]\nto = 'http://localhost:1'\n";
    for (written, words) in [
        (
            "[site]\nto = 'http://localhost:1'\n".to_owned(),
            ["site.toml:1: site: ", "as [[site]]"],
        ),
        (
            "[[site]]\nto = 'http://localhost:1 weight=0'\n".to_owned(),
            ["site.toml:2: site[1].to: ", "leave out an application"],
        ),
        (
            format!("{to}[site.proxy]\nhealth_path = 'health'\n"),
            ["site.toml:4: site[1].proxy.health_path: ", "begins with /"],
        ),
        (
            format!("{to}allow = '10.0.0.1/8'\n"),
            [
                "site.toml:3: site[1].allow: ",
                "write 10.0.0.0/8 for the network, or 10.0.0.1 ",
            ],
        ),
        (
            format!("access_log = 'a.log'\nlog_rotate = 'every=5m'\n{to}"),
            ["site.toml:2: log_rotate: every: ", "write min for minutes"],
        ),
        (
            format!("access_log = '-'\nlog_rotate = 'every=1d'\n{to}"),
            [
                "site.toml:2: log_rotate: ",
                "set access_log or error_log to the path of a file",
            ],
        ),
    ] {
        std::fs::write(&file, written).unwrap();
        fails(&["check", text(&file)], 2, &words);
        fails(&["serve", "--config", text(&file)], 2, &words);
    }
    let words = ["--log-rotate: ", "to the path of a file"];
    fails(
        &["serve", text(directory.path()), "--log-rotate", "every=1d"],
        2,
        &words,
    );
}

#[test]
fn what_becomes_of_applications_that_are_checked_is_reported() {
    let (root, files) = (site(), TempDir::new().unwrap());
    let mut application = Server::start_to_be_replaced(&[text(root.path())]);
    let address = application.address.clone();
    let config = files.path().join("proxy.toml");
    let written = format!(
        "[proxy]\nto = 'https://{address}'\nhealth_path = '/a.txt'\nhealth_interval = '100ms'\n\
         [proxy.tls]\ninsecure = true\n"
    );
    std::fs::write(&config, written).unwrap();
    let arguments = [
        "proxy",
        "--listen",
        "127.0.0.1:0",
        "--config",
        text(&config),
    ];
    let mut proxy = Server::spawn(marline(&arguments).stdout(Stdio::null()));
    application.child.kill().unwrap();
    application.child.wait().unwrap();
    let line = proxy.line();
    assert!(
        line.contains(&address) && line.contains("because its health check fails"),
        "{line}"
    );
    let _restarted = Server::start_at(&address, &[text(root.path())]);
    let line = proxy.line();
    assert!(line.contains("works again"), "{line}");
}
