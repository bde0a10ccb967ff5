//! The status of a certificate, from `openssl ocsp`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::{Server, fails, run, site, text};

fn openssl(files: &Path, arguments: &str) -> Command {
    let mut command = Command::new("openssl");
    command
        .args(arguments.split_whitespace())
        .current_dir(files)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Ends its process when it is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A responder for the certificate 1000 of `ca.pem`, and its port.
fn responder(files: &Path) -> (Running, String) {
    fs::write(
        files.join("index"),
        "V\t20400101000000Z\t\t1000\tunknown\t/CN=localhost\n",
    )
    .unwrap();
    let signed = "-CA ca.pem -rsigner ca.pem -rkey ca.key -nmin 60";
    let mut child = openssl(files, &format!("ocsp -index index -port 0 {signed}"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("openssl is installed by tools/deps.sh");
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let port = line
        .split([':', ' '])
        .find(|word| word.parse::<u16>().is_ok());
    (Running(child), port.unwrap().to_owned())
}

/// Writes `cert.pem` and `cert.key`, which ask for the status at `port`.
fn certify(files: &Path, port: &str) {
    const KEY: &str = "-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1";
    let extensions = format!(
        "subjectAltName=DNS:localhost\ntlsfeature=status_request\nauthorityInfoAccess=OCSP;URI:http://127.0.0.1:{port}\n"
    );
    fs::write(files.join("extensions"), extensions).unwrap();
    for arguments in [
        format!("req {KEY} -subj /CN=localhost -keyout cert.key -out cert.csr"),
        "x509 -req -in cert.csr -out cert.pem -CA ca.pem -CAkey ca.key -set_serial 0x1000 -extfile extensions".to_owned(),
    ] {
        assert!(openssl(files, &arguments).status().unwrap().success());
    }
    fs::copy(files.join("cert.pem"), files.join("alone.pem")).unwrap();
    let chain = ["cert.pem", "ca.pem"].map(|file| fs::read(files.join(file)).unwrap());
    fs::write(files.join("cert.pem"), chain.concat()).unwrap();
}

#[test]
fn a_server_staples_the_status_that_its_certificate_asks_for() {
    let directory = TempDir::new().unwrap();
    let files = directory.path();
    let ca = "req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=ca -keyout ca.key -out ca.pem";
    assert!(openssl(files, ca).status().unwrap().success());
    let (responder, port) = responder(files);
    certify(files, &port);
    let root = site();
    let [cert, key, state] = ["cert.pem", "cert.key", "state"].map(|name| files.join(name));
    let config = files.join("site.toml");
    let settings = format!(
        "dir = {root:?}\ncert = {cert:?}\nkey = {key:?}\nstate = {state:?}\nmetrics = \":0\"\n",
        root = root.path()
    );
    fs::write(&config, settings).unwrap();
    // Without that of the issuer, no responder can be asked.
    let whole = fs::read(&cert).unwrap();
    fs::copy(files.join("alone.pem"), &cert).unwrap();
    let words = ["localhost asks to be stapled, but ", "issuer"];
    fails(&["check", text(&config)], 1, &words);
    fs::write(&cert, whole).unwrap();
    let check = || {
        let output = run(&["check", text(&config)]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(check().contains("stapled status: not yet received"));

    let server = Server::start(&["--config", text(&config)]);
    let metrics = server
        .printed
        .iter()
        .find_map(|line| line.strip_prefix("metrics on "));
    let health = metrics.unwrap().replace("/metrics", "/health");
    let ocsp = || {
        let output = run(&["get", &health, "--http", "1.1c"]);
        let mut health: Value = serde_json::from_slice(&output.stdout).unwrap();
        health["ocsp"][0].take()
    };
    while ocsp()["stapled"].is_null() {
        sleep(Duration::from_millis(20));
    }
    let status = ocsp();
    assert_eq!(status["certificate"], "localhost");
    assert!(status["problem"].is_null(), "{status}");
    let shown = |server: &Server| {
        let connect = format!("s_client -connect {} -status", server.address);
        let output = openssl(files, &connect).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(shown(&server).contains("Cert Status: good"));
    while !check().contains("stapled status: good, until 20") {
        sleep(Duration::from_millis(20));
    }

    // A new start has it without a responder.
    drop(responder);
    server.terminate();
    let server = Server::start(&["--config", text(&config)]);
    assert!(shown(&server).contains("Cert Status: good"));
}
