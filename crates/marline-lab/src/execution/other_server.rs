//! Third-party servers: programs that serve the objects of a workload as files.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::path::{Component, Path};
use std::process::{Command, Stdio};
use std::time::Duration;

use marline_http::server::{GeneratedObject, Identity};
use tokio::time::{sleep, timeout};

use super::program::Program;
use super::{Kernel, failed};
use crate::scenario::{HttpVersion, RunError, TcpController};

/// The time limit for a server to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval of these checks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The task of a third-party server.
pub(super) struct Task<'a> {
    /// The command, for a shell.
    pub(super) command: &'a str,
    /// The address to listen on.
    pub(super) address: SocketAddr,
    pub(super) version: HttpVersion,
    /// The controller of its connections of TCP.
    pub(super) controller: Option<TcpController>,
    pub(super) identity: Identity,
    /// The objects, by path.
    pub(super) objects: &'a BTreeMap<String, GeneratedObject>,
}

/// Starts the server on the host of `kernel`, and waits until it listens.
///
/// # Errors
/// Its files cannot be written, or it does not listen.
pub(super) async fn start(kernel: &dyn Kernel, task: Task<'_>) -> Result<Program, RunError> {
    let command = task.command;
    let cannot = |why: &dyn std::fmt::Display| failed(format_args!("the server {command:?} {why}"));
    let with = |what: &'static str| {
        move |error: io::Error| cannot(&format_args!("cannot be started: {what}: {error}"))
    };
    let directory = Program::directory("server").map_err(with("creating a directory"))?;
    let (root, run) = (directory.path().join("root"), directory.path().join("run"));
    let (certificate, key) = (
        directory.path().join("cert.pem"),
        directory.path().join("key.pem"),
    );
    let prepare = || -> io::Result<()> {
        fs::create_dir(&root)?;
        fs::create_dir(&run)?;
        fs::write(&certificate, task.identity.certificate_pem())?;
        // Other users have no access to the directory.
        fs::write(&key, task.identity.key_pem())?;
        let mut objects = task.objects.iter();
        objects.try_for_each(|(path, object)| write(&root, path, object))
    };
    prepare().map_err(with("writing its files"))?;
    if let Some(controller) = task.controller {
        let set = kernel.use_controller(controller);
        set.map_err(with("setting the controller of TCP"))?;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    shell.env("MARLINE_ROOT", &root).env("MARLINE_RUN", &run);
    shell.env("MARLINE_CERTIFICATE", &certificate);
    shell.env("MARLINE_KEY", &key);
    shell.env("MARLINE_ADDRESS", task.address.ip().to_string());
    shell.env("MARLINE_PORT", task.address.port().to_string());
    if let Ok(marline) = std::env::current_exe() {
        shell.env("MARLINE", marline);
    }
    shell.stdin(Stdio::null()).stdout(Stdio::null());
    let mut program = Program::start(kernel, shell, directory).map_err(with("the shell"))?;
    let look = async {
        loop {
            if let Some(status) = program.has_ended()? {
                return Ok(Some(status));
            }
            if kernel.listens(task.version.is_over_tcp(), task.address.port())? {
                return Ok(None);
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let looked = timeout(LISTEN_TIMEOUT, look).await;
    let said = match program.last_line() {
        Some(line) => format!(": {line}"),
        None => String::new(),
    };
    match looked {
        Ok(Ok(None)) => Ok(program),
        Ok(Ok(Some(status))) => Err(cannot(&format_args!(
            "ended at once ({status}); it must stay in the foreground{said}"
        ))),
        Ok(Err(error)) => Err(with("looking at its sockets")(error)),
        Err(_) => Err(cannot(&format_args!(
            "does not listen at {} within {} s; the address is in MARLINE_ADDRESS and MARLINE_PORT{said}",
            task.address,
            LISTEN_TIMEOUT.as_secs()
        ))),
    }
}

/// Writes an object as a file.
fn write(root: &Path, path: &str, object: &GeneratedObject) -> io::Result<()> {
    let relative = Path::new(path.trim_start_matches('/'));
    let is_plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if path.ends_with('/') || !is_plain {
        let why = format!("the path {path:?} is not a file name");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let file = root.join(relative);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = BufWriter::new(File::create(file)?);
    object.write_content(path, &mut file)?;
    file.flush()
}
