//! The process that becomes the kernel.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::personality::{self, Persona};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Pid, getppid};

/// Replaces this process by the command, which is killed when the thread that started this process ends, has the same
/// addresses of memory each time, and runs on one processor: the kernel and the processes that it handles alternate, and
/// between processors each handover takes many times longer.
///
/// # Errors
/// Returns only if it fails: the system refuses one of these, or there is no such program.
pub fn launch(parent: i32, processor: usize, command: &[OsString]) -> io::Error {
    let prepare = || -> io::Result<()> {
        prctl::set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before.
        if getppid() != Pid::from_raw(parent) {
            return Err(io::Error::other("the process that started it has ended"));
        }
        personality::set(personality::get()? | Persona::ADDR_NO_RANDOMIZE)?;
        let mut set = CpuSet::new();
        set.set(processor)?;
        Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
    };
    let Some((program, arguments)) = command.split_first() else {
        return io::Error::from(io::ErrorKind::InvalidInput);
    };
    match prepare() {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    }
}
