//! The programs of the command, each in a namespace.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use marline_lab::emu::Namespace;

use crate::{STEP, until};

/// A running program, whose messages are read.
pub(crate) struct Program {
    child: Child,
    messages: Arc<Mutex<Vec<String>>>,
}

/// Runs a verb of `marline tunnel` to its end.
pub(crate) fn run<A: AsRef<OsStr>>(namespace: &Namespace, arguments: &[A]) -> (ExitStatus, String) {
    let output = output(namespace, arguments);
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, messages)
}

/// The output of a verb of `marline tunnel`, and its status.
pub(crate) fn output<A: AsRef<OsStr>>(namespace: &Namespace, arguments: &[A]) -> Output {
    let mut command = marline(arguments);
    namespace.inside(|| command.output()).unwrap().unwrap()
}

/// Standard output of a verb of `marline tunnel`.
pub(crate) fn printed<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    let output = marline(arguments).output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn marline<A: AsRef<OsStr>>(arguments: &[A]) -> Command {
    verb("tunnel", arguments)
}

/// A verb of `marline`.
fn verb<A: AsRef<OsStr>>(verb: &str, arguments: &[A]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marline"));
    command.arg(verb).args(arguments).stdin(Stdio::null());
    command.env_remove("MARLINE_TUNNEL_TOKEN");
    command
}

/// The output of a verb of `marline`, and its status.
pub(crate) fn output_of<A: AsRef<OsStr>>(
    namespace: &Namespace,
    name: &str,
    arguments: &[A],
) -> Output {
    let mut command = verb(name, arguments);
    namespace.inside(|| command.output()).unwrap().unwrap()
}

/// A verb of `marline tunnel` for which `etc` is the directory /etc.
fn with_etc<A: AsRef<OsStr>>(etc: &Path, arguments: &[A]) -> Command {
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]).arg(etc);
    command.args([env!("CARGO_BIN_EXE_marline"), "tunnel"]);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs a verb of `marline tunnel` to its end, with this directory /etc.
pub(crate) fn run_with_etc<A: AsRef<OsStr>>(
    namespace: &Namespace,
    etc: &Path,
    arguments: &[A],
) -> (ExitStatus, String) {
    let mut command = with_etc(etc, arguments);
    let output = namespace.inside(|| command.output()).unwrap().unwrap();
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status, messages)
}

impl Program {
    /// Starts a verb of `marline tunnel`.
    pub(crate) fn start<A: AsRef<OsStr>>(namespace: &Namespace, arguments: &[A]) -> Self {
        Self::spawn(namespace, marline(arguments))
    }

    /// Starts a verb of `marline`.
    pub(crate) fn start_verb<A: AsRef<OsStr>>(
        namespace: &Namespace,
        name: &str,
        arguments: &[A],
    ) -> Self {
        Self::spawn(namespace, verb(name, arguments))
    }

    /// Starts a verb of `marline tunnel` with this directory /etc.
    pub(crate) fn start_with_etc<A: AsRef<OsStr>>(
        namespace: &Namespace,
        etc: &Path,
        arguments: &[A],
    ) -> Self {
        Self::spawn(namespace, with_etc(etc, arguments))
    }

    fn spawn(namespace: &Namespace, mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = namespace.inside(|| command.spawn()).unwrap().unwrap();
        let messages = Arc::<Mutex<Vec<String>>>::default();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let keeping = Arc::clone(&messages);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                keeping.lock().unwrap().push(line);
            }
        });
        Self { child, messages }
    }

    /// How many messages have `text`.
    pub(crate) fn count(&self, text: &str) -> usize {
        let messages = self.messages.lock().unwrap();
        messages.iter().filter(|line| line.contains(text)).count()
    }

    /// Waits until there are `count` messages with `text`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str, count: usize) {
        let began = Instant::now();
        while self.count(text) < count {
            let is_late = began.elapsed() > STEP;
            assert!(
                !is_late && self.child.try_wait().unwrap().is_none(),
                "no {text:?}: {self:?}"
            );
            std::thread::sleep(crate::PAUSE);
        }
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(sent.unwrap().success());
    }

    /// Waits until it has ended.
    #[track_caller]
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the program has ended", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.messages.lock().unwrap().fmt(f)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("{self:#?}");
        }
    }
}

/// The text of a path.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
