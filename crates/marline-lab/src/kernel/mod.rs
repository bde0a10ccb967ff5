//! A Linux kernel of its own in virtual time.
//!
//! User-mode Linux is the kernel as a program: it needs no privileges, and its processes are processes of this machine
//! whose system calls it handles. With its time travel, computing takes no time, and when all processes wait, its clock
//! jumps to the next timer. Programs in it have the TCP, MPTCP, namespaces and devices of a real kernel, without
//! delays. Started with equal command lines it behaves equally, since its random numbers derive from a seed in it.
//!
//! A [`Machine`] boots the kernel with the file system of this machine, runs one [`Task`] in it, and returns its
//! output. [`VirtualTime`] is the backend that runs jobs in such machines: each executes the [emulator](crate::emu) as
//! it is. `make kernel` builds the kernel.

mod backend;
mod error;
mod guest;
mod image;
mod launch;
mod limits;
mod machine;
mod scratch;

pub use self::backend::{START, VirtualTime};
pub use self::error::KernelError;
pub use self::guest::become_init;
pub use self::image::Image;
pub use self::launch::launch;
pub use self::machine::{Finished, Machine, Task, Work};
