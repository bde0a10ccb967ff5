//! A server under a service manager, and as another user.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::{Server, fails, marline, run, site, text};

/// The socket of a service manager.
struct Manager {
    socket: UnixDatagram,
    name: String,
}

impl Manager {
    fn at(path: &Path) -> Self {
        Self::of(UnixDatagram::bind(path).unwrap(), text(path).to_owned())
    }

    /// With a socket that has no file.
    fn hidden() -> Self {
        let name = format!("marline-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&address).unwrap();
        Self::of(socket, format!("@{name}"))
    }

    fn of(socket: UnixDatagram, name: String) -> Self {
        let limit = Some(Duration::from_secs(20));
        socket.set_read_timeout(limit).unwrap();
        Self { socket, name }
    }

    /// The next message that is not about the watchdog.
    fn next(&self) -> String {
        loop {
            let message = self.any();
            if message != "WATCHDOG=1" {
                return message;
            }
        }
    }

    fn any(&self) -> String {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).expect("a message");
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }
}

fn serve(arguments: &[&str]) -> Command {
    let mut command = marline(&["serve", "--listen", "127.0.0.1:0"]);
    command.args(arguments).stdout(Stdio::null());
    command
}

#[test]
fn a_service_manager_follows_start_reload_and_end() {
    let place = TempDir::new().unwrap();
    for manager in [Manager::at(&place.path().join("notify")), Manager::hidden()] {
        let root = site();
        let config = root.path().join("site.toml");
        fs::write(&config, format!("dir = '{}'", text(root.path()))).unwrap();
        let mut command = serve(&["--config", text(&config)]);
        let server = Server::spawn(command.env("NOTIFY_SOCKET", &manager.name));
        let listening = format!("READY=1\nSTATUS=listening on https://{}", server.address);
        assert_eq!(manager.next(), listening);

        server.signal("-HUP");
        let reloading = manager.next();
        let fields: Vec<_> = reloading.lines().collect();
        assert_eq!(fields[0], "RELOADING=1");
        let time = fields[1].strip_prefix("MONOTONIC_USEC=").unwrap();
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let uptime: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let time: f64 = time.parse().unwrap();
        assert!(time > 0.0 && time / 1e6 < uptime + 60.0, "{time} {uptime}");
        assert_eq!(
            manager.next(),
            "READY=1\nSTATUS=read the configuration again"
        );

        fs::write(&config, "dir = 'none'").unwrap();
        server.signal("-HUP");
        assert!(manager.next().starts_with("RELOADING=1\n"));
        let refused = manager.next();
        assert!(refused.starts_with("READY=1\nSTATUS=") && refused.contains("stays as it was"));

        server.signal("-TERM");
        assert!(manager.next().starts_with("STOPPING=1\n"));
    }
}

#[test]
fn the_watchdog_of_this_process_alone_hears_of_it() {
    let place = TempDir::new().unwrap();
    let manager = Manager::at(&place.path().join("notify"));
    let root = site();
    let start = |pid: &str| {
        let mut command = serve(&[text(root.path()), "--workers", "2"]);
        command.env("NOTIFY_SOCKET", &manager.name);
        command.env("WATCHDOG_USEC", "200000");
        if !pid.is_empty() {
            command.env("WATCHDOG_PID", pid);
        }
        Server::spawn(&mut command)
    };
    let server = start("");
    assert!(manager.any().starts_with("READY=1"));
    for _ in 0..3 {
        assert_eq!(manager.any(), "WATCHDOG=1");
    }
    assert_eq!(server.terminate().0, 0);
    while !manager.any().starts_with("STOPPING=1") {}
    let server = start("1");
    while !manager.any().starts_with("READY=1") {}
    server.signal("-HUP");
    assert!(manager.any().starts_with("RELOADING=1"));
}

#[test]
fn a_wrong_environment_is_named() {
    let root = site();
    for (name, value) in [
        ("NOTIFY_SOCKET", "relative"),
        ("WATCHDOG_USEC", "soon"),
        ("WATCHDOG_PID", "-1"),
    ] {
        let output = serve(&[text(root.path())]).env(name, value).output();
        let output = output.unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(name), "{printed}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_file_has_the_process_id_while_the_server_runs() {
    let root = site();
    let file = root.path().join("pid");
    let server = Server::start(&[text(root.path()), "--pid-file", text(&file)]);
    let written = fs::read_to_string(&file).unwrap();
    assert_eq!(written, format!("{}\n", server.child.id()));
    assert_eq!(server.terminate().0, 0);
    assert!(!file.exists());

    let server = Server::start(&[text(root.path()), "--pid-file", text(&file)]);
    fs::write(&file, "1\n").unwrap();
    assert_eq!(server.terminate().0, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n", "another's stays");
    let nowhere = root.path().join("none/pid");
    let arguments = [
        "serve",
        text(root.path()),
        "--listen",
        "127.0.0.1:0",
        "--pid-file",
        text(&nowhere),
    ];
    let printed = String::from_utf8(run(&arguments).stderr).unwrap();
    assert!(printed.contains(text(&nowhere)), "{printed}");
}

/// Files that nobody owns, for a server of nobody.
struct OfNobody {
    root: TempDir,
    uid: u32,
}

impl OfNobody {
    /// None, after a message, if this process cannot become another user.
    fn new() -> Option<Self> {
        let id = Command::new("id").args(["-u", "nobody"]).output().unwrap();
        let uid = String::from_utf8(id.stdout).unwrap().trim().parse();
        let (Ok(uid), true) = (uid, is_root()) else {
            println!("skipped: needs root, and the user nobody");
            return None;
        };
        let root = site();
        let path = root.path().to_owned();
        let keys = rcgen::KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let certificate = rcgen::CertificateParams::new(names)
            .unwrap()
            .self_signed(&keys)
            .unwrap();
        fs::write(path.join("cert.pem"), certificate.pem()).unwrap();
        fs::write(path.join("key.pem"), keys.serialize_pem()).unwrap();
        fs::create_dir(path.join("log")).unwrap();
        fs::create_dir(path.join("state")).unwrap();
        let config = "dir = '.'\nuser = 'nobody'\ncert = 'cert.pem'\nkey = 'key.pem'\nstate = 'state'\n\
            access_log = 'log/access'\nlog_rotate = 'size=1MB'\npid_file = 'log/pid'\nworkers = 3\n";
        fs::write(path.join("site.toml"), config).unwrap();
        let this = Self { root, uid };
        this.give(".", 0o755);
        this.give("key.pem", 0o600);
        this.give("log", 0o755);
        this.give("state", 0o700);
        Some(this)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Makes a file nobody's.
    fn give(&self, name: &str, mode: u32) {
        self.own(name, self.uid, mode);
    }

    fn own(&self, name: &str, owner: u32, mode: u32) {
        let path = self.path(name);
        chown(&path, Some(owner), None).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn serve(&self) -> Command {
        serve(&["--config", text(&self.path("site.toml"))])
    }
}

/// Whether this process may become any user: neither another than root, nor root of a namespace of one user.
fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    let users = fs::read_to_string("/proc/self/uid_map").unwrap();
    let count = users.split_whitespace().nth(2).map(str::to_owned);
    id.stdout == b"0\n" && count.as_deref() != Some("1")
}

/// The values of a field of /proc/PID/task/TID/status, of all threads.
fn of_all_threads(pid: u32, field: &str) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = tasks.filter_map(|task| {
        // A thread may have ended.
        let status = fs::read_to_string(task.unwrap().path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        Some(line.split_whitespace().collect::<Vec<_>>().join(" "))
    });
    status.collect()
}

#[test]
fn all_threads_become_the_user_and_keep_no_rights() {
    let Some(files) = OfNobody::new() else { return };
    let mut server = Server::spawn(&mut files.serve());
    let pid = server.child.id();
    let uid = files.uid;
    let group = of_all_threads(pid, "Gid:").remove(0);
    let group = group.split(' ').next().unwrap().to_owned();
    assert_ne!(group, "0");
    for (field, expected) in [
        ("Uid:", format!("{uid} {uid} {uid} {uid}")),
        ("Gid:", format!("{group} {group} {group} {group}")),
        ("Groups:", group.clone()),
        ("CapPrm:", "0000000000000000".to_owned()),
        ("CapEff:", "0000000000000000".to_owned()),
        ("NoNewPrivs:", "1".to_owned()),
    ] {
        let values = of_all_threads(pid, field);
        assert!(values.len() >= 4, "{} threads", values.len());
        assert!(
            values.iter().all(|value| *value == expected),
            "{field} {values:?}"
        );
    }
    let certificate = files.path("cert.pem");
    let url = server.url("a.txt");
    let get = || run(&["get", &url, "--cacert", text(&certificate)]).stdout;
    assert_eq!(get(), b"first");
    server.signal("-HUP");
    assert!(server.line().contains("read the configuration again"));
    assert_eq!(get(), b"first");
    assert!(files.path("log/pid").exists());
    assert_eq!(server.terminate().0, 0);
    assert!(!files.path("log/pid").exists());
    let log = fs::read_to_string(files.path("log/access")).unwrap();
    assert_eq!(log.lines().count(), 2);
    // What another process of that user has to be able to read.
    Server::spawn(files.serve().uid(uid).gid(group.parse().unwrap()));
}

#[test]
fn what_the_user_cannot_open_stops_the_start() {
    let Some(files) = OfNobody::new() else { return };
    let refused = |name: &str, words: &[&str]| {
        let output = files.serve().output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{name}: {printed}");
        let path = files.path(name);
        for word in [&[text(&path), "as the user nobody"], words].concat() {
            assert!(printed.contains(word), "`{word}` in {printed}");
        }
    };
    for (name, mode) in [("key.pem", 0o600), ("log", 0o755), ("state", 0o700)] {
        files.own(name, 0, mode);
        refused(name, &["ermission denied"]);
        files.give(name, mode);
    }
    files.own("site.toml", 0, 0o600);
    let output = files.serve().output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(
        printed.contains("site.toml: Permission denied"),
        "{printed}"
    );
    files.give("site.toml", 0o644);

    // A log that is there is appended to, but no other can be created beside it.
    fs::write(files.path("log/access"), "").unwrap();
    files.give("log/access", 0o644);
    files.own("log", 0, 0o755);
    refused("log/access", &["rotation"]);
}

#[test]
fn check_tries_files_as_the_user_of_the_server() {
    let Some(files) = OfNobody::new() else { return };
    let config = files.path("site.toml");
    let check = || {
        let output = run(&["check", text(&config)]);
        let printed = String::from_utf8(output.stderr).unwrap();
        (output.status.success(), printed)
    };
    let (is_right, printed) = check();
    assert!(is_right, "{printed}");
    for (name, mode, key) in [
        ("key.pem", 0o600, "site.toml:3: cert"),
        ("log", 0o755, "site.toml:6: access_log"),
        ("state", 0o700, "site.toml:5: state"),
    ] {
        files.own(name, 0, mode);
        let (is_right, printed) = check();
        assert!(!is_right, "{name}");
        for word in [key, "ermission denied", "as the user nobody"] {
            assert!(printed.contains(word), "`{word}` in {printed}");
        }
        files.give(name, mode);
    }
    let content = fs::read_to_string(&config).unwrap();
    for (key, wrong) in [
        ("pid_file", "pid_file = 'none/pid'"),
        ("access_log", "access_log = 'none/access'"),
    ] {
        let line = content.lines().find(|line| line.starts_with(key)).unwrap();
        fs::write(&config, content.replace(line, wrong)).unwrap();
        let (is_right, printed) = check();
        assert!(
            !is_right && printed.contains(&format!(": {key}: ")),
            "{printed}"
        );
    }
    assert!(!files.path("log/access").exists(), "nothing is written");
}

#[test]
fn users_that_a_process_cannot_become_are_refused() {
    let root = site();
    let directory = text(root.path());
    for (flags, words) in [
        (&["--user", "none-such"][..], "there is no user none-such"),
        (&["--group", "nogroup"], "group needs user"),
        (
            &["--user", "nobody", "--group", "none-such"],
            "there is no group none-such",
        ),
    ] {
        let output = run(&[&["serve", directory], flags].concat());
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(words), "{printed}");
        assert_eq!(output.status.code(), Some(2));
    }
    if !is_root() {
        println!("skipped: needs root to be another user");
        return;
    }
    let mut command = serve(&[directory, "--user", "daemon"]);
    match command.uid(65534).gid(65534).output() {
        Err(error) => println!("skipped: {error}"),
        Ok(output) => {
            let printed = String::from_utf8(output.stderr).unwrap();
            assert!(printed.contains("only root can become daemon"), "{printed}");
        }
    }
}

#[test]
fn systemd_understands_the_unit() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/systemd");
    let place = TempDir::new().unwrap();
    let service = place.path().join("marline.service");
    // The command has to exist.
    let unit = fs::read_to_string(units.join("marline.service")).unwrap();
    let command = env!("CARGO_BIN_EXE_marline");
    fs::write(&service, unit.replace("/usr/bin/marline", command)).unwrap();
    let socket = place.path().join("marline.socket");
    fs::copy(units.join("marline.socket"), &socket).unwrap();
    let analyze = |arguments: &[&str]| {
        let output = Command::new("systemd-analyze").args(arguments).output();
        let output = output.inspect_err(|_| println!("skipped: needs systemd-analyze"));
        output.ok().map(|output| {
            let both = [output.stdout, output.stderr].concat();
            (output.status, String::from_utf8(both).unwrap())
        })
    };
    let Some((status, printed)) = analyze(&["verify", "--man=no", text(&service), text(&socket)])
    else {
        return;
    };
    let of_units = printed.lines().filter(|line| line.contains("marline."));
    // Known from 253 on.
    let complaints: Vec<_> = of_units
        .filter(|line| !line.contains("notify-reload"))
        .collect();
    assert_eq!((status.success(), complaints), (true, vec![]), "{printed}");

    let threshold = ["security", "--offline=true", "--threshold=20"];
    let checked = analyze(&[&threshold[..], &[text(&service)]].concat());
    let (status, printed) = checked.unwrap();
    assert!(status.success(), "{printed}");
}

#[test]
fn a_pid_file_is_nothing_else_than_one() {
    let (root, place) = (site(), TempDir::new().unwrap());
    let file = place.path().join("pid");
    let arguments = [
        "serve",
        text(root.path()),
        "--listen",
        "127.0.0.1:0",
        "--pid-file",
        text(&file),
    ];
    let refused = |kept: &str| {
        fails(&arguments, 1, &["pid_file", "choose another"]);
        assert_eq!(fs::read_to_string(&file).unwrap_or_default(), kept);
    };
    fs::write(&file, "key = 1\n").unwrap();
    refused("key = 1\n");
    let other = place.path().join("other");
    fs::rename(&file, &other).unwrap();
    std::os::unix::fs::symlink(&other, &file).unwrap();
    refused("key = 1\n");
    fs::remove_file(&file).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
    fails(&arguments, 1, &["pid_file", "choose another"]);
    assert!(file.exists());
}
