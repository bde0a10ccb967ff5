//! `proxy` before `serve`.

use std::process::Stdio;

use tempfile::TempDir;

use crate::{Server, marline, run, site, text};

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
    let mut application = Server::start(&arguments);
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
