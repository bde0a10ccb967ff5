//! Network namespaces for tests, and the devices that join them.

use std::io;
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use marline_lab::emu::Namespace;

/// A new namespace.
///
/// # Errors
/// A privilege is missing.
pub(crate) fn namespace() -> Result<Arc<Namespace>, String> {
    let made = Namespace::new().map(Arc::new);
    made.map_err(|error| error.to_string())
}

/// Joins two namespaces by a pair of devices, which are up.
pub(crate) fn join(
    first: &Arc<Namespace>,
    device: &str,
    second: &Arc<Namespace>,
    other: &str,
) -> Result<(), String> {
    let held = Held::of(second).map_err(|error| error.to_string())?;
    let pair = format!("link add name {device} type veth peer name {other} netns ");
    ip(first, &format!("{pair}{}", held.path))?;
    ip(first, &format!("link set {device} up"))?;
    ip(second, &format!("link set {other} up")).map(drop)
}

/// The output of `ip` with these words.
pub(crate) fn ip(namespace: &Namespace, words: &str) -> Result<String, String> {
    run(namespace, "ip", words)
}

/// The output of `program` with these words.
pub(crate) fn run(namespace: &Namespace, program: &str, words: &str) -> Result<String, String> {
    let run = || Command::new(program).args(words.split(' ')).output();
    let output = namespace.inside(run).and_then(|output| output);
    let output = output.map_err(|error| format!("cannot run `{program}`: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => {
            let error = String::from_utf8_lossy(&output.stderr);
            Err(format!("`{program} {words}`: {}", error.trim()))
        }
    }
}

/// A thread inside a namespace, by which programs find it: it has no name.
struct Held {
    path: String,
    /// Dropped to end the thread.
    _end: Sender<()>,
}

impl Held {
    fn of(namespace: &Arc<Namespace>) -> io::Result<Self> {
        let (found, path) = channel();
        let (end, ended) = channel::<()>();
        let inside = Arc::clone(namespace);
        std::thread::spawn(move || {
            inside.inside(move || {
                let thread = std::fs::read_link("/proc/thread-self");
                let _ = found.send(thread.map(|at| format!("/proc/{}/ns/net", at.display())));
                let _ = ended.recv();
            })
        });
        let path = path.recv().map_err(io::Error::other)??;
        Ok(Self { path, _end: end })
    }
}
