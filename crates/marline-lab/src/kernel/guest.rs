//! The first process inside a machine.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};

use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};
use nix::unistd::{Pid, getpid};

use super::KernelError;
use super::backend::execute_job;
use super::scratch::{ERRORS, INPUT, OUTPUT, Program, RawValue, STATUS, TASK, WrittenWork};
use crate::emu::{LOOPBACK, Routing, in_virtual_time};
use crate::run::without_panic;

/// The directory of a program's output until it ends: writing to a file of the host would take the
/// host's time.
const PRINTED: &str = "/run/marline";

/// A variable that keeps AWS-LC from taking random numbers from the processor: bit 30 of ECX, which is its bit 62, is RDRAND.
pub(super) const NO_RDRAND: (&str, &str) = ("OPENSSL_ia32cap", "~0x4000000000000000");

/// Runs the task in the directory that is shared with the host, and switches the machine off.
///
/// # Errors
/// This is not the first process of a kernel in virtual time, or a system call failed.
pub fn become_init() -> Result<Infallible, KernelError> {
    if getpid() != Pid::from_raw(1) || !in_virtual_time() {
        return Err(KernelError::NotGuest);
    }
    let status = run().unwrap_or_else(|error| error.to_string());
    // If it cannot be written, the host finds none.
    let _ = fs::write(STATUS, status);
    reboot(RebootMode::RB_POWER_OFF).map_err(KernelError::system("switching off"))
}

/// Runs the task. Returns its exit status as text.
fn run() -> io::Result<String> {
    // It was mounted read-only. Updating access times would cost virtual time in only the first of two equal runs.
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REMOUNT | MsFlags::MS_NOATIME,
        None::<&str>,
    )?;
    // /proc is still that of the host, where this kernel is a process, and the shared directory its working directory.
    let shared = fs::read_link("/proc/self/cwd")?;
    std::env::set_current_dir(shared)?;
    for (kind, place) in [
        ("proc", "/proc"),
        ("sysfs", "/sys"),
        ("devtmpfs", "/dev"),
        ("tmpfs", "/run"),
    ] {
        mount(
            Some(kind),
            place,
            Some(kind),
            MsFlags::empty(),
            None::<&str>,
        )?;
    }
    for directory in ["/dev/shm", "/dev/pts", "/run/netns", PRINTED] {
        fs::create_dir_all(directory)?;
    }
    mount(
        Some("tmpfs"),
        "/dev/shm",
        Some("tmpfs"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    mount(
        Some("devpts"),
        "/dev/pts",
        Some("devpts"),
        MsFlags::empty(),
        None::<&str>,
    )?;
    for (name, target) in [
        ("/dev/fd", "/proc/self/fd"),
        ("/dev/stdin", "/proc/self/fd/0"),
        ("/dev/stdout", "/proc/self/fd/1"),
        ("/dev/stderr", "/proc/self/fd/2"),
    ] {
        std::os::unix::fs::symlink(target, name)?;
    }
    // AWS-LC takes random numbers from the kernel alone, which derive from the seed, where it finds this file, by which
    // virtual machines count how often they were restored. Elsewhere it measures the jitter of the processor.
    fs::write("/dev/sysgenid", [0; 4])?;
    let task: RawValue = serde_json::from_slice(&fs::read(TASK)?)?;
    // Namespaces bring their own; this one is for programs that need none.
    Routing::open()
        .and_then(|mut routing| routing.set_up(LOOPBACK))
        .map_err(|error| io::Error::other(format!("switching the loopback device on: {error}")))?;
    let code = match task.work {
        WrittenWork::Program(program) => run_program(&program, &task.directory)?,
        WrittenWork::Job => run_job(&task.directory)?,
    };
    Ok(code.to_string())
}

/// Runs a program in a directory. Returns its exit status.
fn run_program(program: &Program, directory: &Path) -> io::Result<i32> {
    let [name, arguments @ ..] = &program.command[..] else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let variables = program.environment.iter();
    let printed = |name: &str| Path::new(PRINTED).join(name);
    let status = Command::new(name)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(variables.map(|variable| (&variable.name, &variable.value)))
        .envs([NO_RDRAND])
        .stdin(File::open(INPUT)?)
        .stdout(File::create(printed(OUTPUT))?)
        .stderr(File::create(printed(ERRORS))?)
        .status()?;
    for name in [OUTPUT, ERRORS] {
        fs::copy(printed(name), name)?;
    }
    Ok(code(status))
}

/// Executes the job in a directory. Returns 0 if there is an answer.
fn run_job(directory: &Path) -> io::Result<i32> {
    let job = fs::read(INPUT)?;
    let shared = File::open(".")?;
    std::env::set_current_dir(directory)
        .map_err(|error| io::Error::other(format!("{}: {error}", directory.display())))?;
    // A panic of the first process would be a kernel panic.
    let answer = without_panic(|| execute_job(&job));
    // Later mounts may hide its path.
    std::env::set_current_dir(format!("/proc/self/fd/{}", shared.as_raw_fd()))?;
    let (code, answer, why) = match answer {
        Ok(answer) => (0, answer, String::new()),
        Err(error) => (1, Vec::new(), error.to_string()),
    };
    fs::write(OUTPUT, answer)?;
    fs::write(ERRORS, why)?;
    Ok(code)
}

/// The exit status as in shells: that of the program, or 128 plus the number of the signal that ended it.
fn code(status: ExitStatus) -> i32 {
    let by_signal = || status.signal().map(|signal| 128 + signal);
    status.code().or_else(by_signal).unwrap_or(1)
}
