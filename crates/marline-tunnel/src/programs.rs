//! The programs whose packets go into a tunnel, by their control groups (`cgroups(7)`).
//!
//! A program of the kernel (BPF) marks each socket that a process of such a group opens, and rules of routing send marked packets
//! into the tunnel. Since the mark is there before a route is chosen, packets have the address of the tunnel. The program of the
//! kernel stays while it is pinned to a file, also after a client was killed: then the rules let nothing pass beside the tunnel.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use aya::Ebpf;
use aya::programs::links::FdLink;
use aya::programs::{CgroupAttachMode, CgroupSock};
use nix::errno::Errno;
use nix::mount::{MsFlags, mount, umount};
use object::write::{Object, Symbol, SymbolSection};
use object::{
    Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind, SymbolScope,
};
use rustix::fs::statfs;
use serde::{Deserialize, Serialize};

use crate::routing::MARK;

/// The directory of files about changes of the host, which is empty after a restart of the machine, as rules and routes are.
pub(crate) const DIRECTORY: &str = "/run/marline";

/// The file systems of this process.
const MOUNTS: &str = "/proc/self/mounts";

/// Where systemd mounts the file system of pins.
const PINS: &str = "/sys/fs/bpf";

/// The type of this file system (`statfs(2)`).
const BPF_FS: u64 = 0xcafe_4a11;

/// The name of the program of the kernel.
const MARKER: &str = "marline_mark";

/// The offset of `mark` in `struct bpf_sock` (`linux/bpf.h`).
const MARK_OFFSET: i16 = 16;

/// The offset of `protocol` there.
const PROTOCOL_OFFSET: i16 = 12;

/// Multipath TCP. Its subflows are sockets of the kernel, which no program marks.
const MPTCP: u32 = 262;

/// Why packets of programs cannot be told from others.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramsError {
    /// There are no control groups of version 2.
    #[error(
        "--split by program needs control groups of version 2, which are mounted nowhere; mount them, as with `mount -t cgroup2 none /sys/fs/cgroup`"
    )]
    NoHierarchy,
    /// There is no such group.
    #[error("there is no control group {}; name one of those below {}, which is there before the tunnel", group.display(), hierarchy.display())]
    NoGroup {
        /// The group.
        group: PathBuf,
        /// The directory of all.
        hierarchy: PathBuf,
    },
    /// A file cannot be made, or a file system not mounted.
    #[error("cannot use {}, for --split by program: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: io::Error,
    },
    /// The kernel refuses its program.
    #[error("the kernel does not mark the sockets of {}: {reason}; --split by program needs BPF for control groups (CONFIG_CGROUP_BPF)", group.display())]
    Kernel {
        /// The group.
        group: PathBuf,
        /// The reason.
        reason: String,
    },
}

/// The control groups whose packets go into a tunnel, and what marks them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Programs {
    groups: Vec<Group>,
    /// That of `marline tunnel run`, which is there while the tunnel is.
    own: Option<PathBuf>,
    /// The file system of pins that is mounted for them.
    mounted: Option<PathBuf>,
}

/// A control group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Group {
    directory: PathBuf,
    pin: PathBuf,
}

/// The choice of programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramChoice {
    /// Whether those that `marline tunnel run` starts are among them.
    pub run: bool,
    /// Those of these control groups, as paths in their hierarchy.
    pub groups: Vec<PathBuf>,
}

impl ProgramChoice {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        !self.run && self.groups.is_empty()
    }
}

impl Programs {
    /// Those of `choice`, for the tunnel of `device`, in the network namespace with this number.
    ///
    /// # Errors
    /// There are no control groups, or not that one.
    pub(crate) fn find(
        choice: &ProgramChoice,
        device: &str,
        namespace: u64,
    ) -> Result<Self, ProgramsError> {
        if choice.is_empty() {
            return Ok(Self::default());
        }
        let hierarchy = hierarchy().ok_or(ProgramsError::NoHierarchy)?;
        let mut directories = Vec::new();
        for group in &choice.groups {
            let directory = hierarchy.join(group.strip_prefix("/").unwrap_or(group));
            if !directory.join("cgroup.procs").exists() {
                return Err(ProgramsError::NoGroup {
                    group: group.clone(),
                    hierarchy,
                });
            }
            directories.push(directory);
        }
        let name = format!("marline-{namespace}-{device}");
        let own = choice.run.then(|| hierarchy.join(&name));
        // First, as `marline tunnel run` may start programs as soon as it is there.
        directories.splice(..0, own.clone());
        let mounted = match is_for_pins(Path::new(PINS)) {
            true => None,
            false => Some(Path::new(DIRECTORY).join(format!("pins-{namespace}-{device}"))),
        };
        let pins = mounted.as_deref().unwrap_or(Path::new(PINS));
        // Names of pins have no dots.
        let name = name.replace('.', "%");
        let groups = directories.into_iter().enumerate();
        let groups = groups.map(|(number, directory)| Group {
            directory,
            pin: pins.join(format!("{name}-{number}")),
        });
        Ok(Self {
            groups: groups.collect(),
            own,
            mounted,
        })
    }

    /// The control group of `marline tunnel run`, if it has one.
    pub fn own(&self) -> Option<&Path> {
        self.own.as_deref()
    }

    /// Whether the kernel marks them. Pins are made last.
    pub(crate) fn are_marked(&self) -> bool {
        self.groups.iter().all(|group| group.pin.exists())
    }

    /// Has the kernel mark the sockets that these programs open from now on.
    ///
    /// # Errors
    /// See [`ProgramsError`].
    pub(crate) fn mark(&self) -> Result<(), ProgramsError> {
        if let Some(own) = &self.own {
            on(own, make_directory(own))?;
        }
        if let Some(pins) = &self.mounted {
            let kind = Some("bpf");
            on(pins, make_directory(pins))?;
            if !is_for_pins(pins) {
                let mounted = mount(kind, pins, kind, MsFlags::empty(), None::<&str>);
                on(pins, mounted.map_err(io::Error::from))?;
            }
        }
        for Group { directory, pin } in &self.groups {
            let group = on(directory, File::open(directory))?;
            // That of a killed client stays until this one is there; its group may be another by the same name.
            let mut new = pin.as_os_str().to_owned();
            new.push("-new");
            let new = PathBuf::from(new);
            let _ = fs::remove_file(&new);
            attach(&group, &new).map_err(|reason| ProgramsError::Kernel {
                group: directory.clone(),
                reason,
            })?;
            on(pin, fs::rename(&new, pin))?;
        }
        Ok(())
    }

    /// Has the kernel mark them no more.
    ///
    /// # Errors
    /// A pin cannot be removed.
    pub(crate) fn unmark(&self) -> Result<(), ProgramsError> {
        for Group { pin, .. } in &self.groups {
            match fs::remove_file(pin) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => on(pin, Err(error))?,
                _ => {}
            }
        }
        if let Some(own) = &self.own {
            // Programs that still run stay there.
            let _ = fs::remove_dir(own);
        }
        if let Some(pins) = &self.mounted {
            match umount(pins) {
                Err(Errno::EINVAL | Errno::ENOENT) | Ok(()) => {}
                Err(error) => on(pins, Err(error.into()))?,
            }
            let _ = fs::remove_dir(pins);
        }
        Ok(())
    }
}

/// The directory of the control groups of version 2.
fn hierarchy() -> Option<PathBuf> {
    let mounts = fs::read_to_string(MOUNTS).ok()?;
    let of_line = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (directory, kind) = (words.next()?, words.next()?);
        (kind == "cgroup2").then(|| PathBuf::from(directory))
    };
    mounts.lines().find_map(of_line)
}

/// Whether a directory is that of a file system of pins.
fn is_for_pins(directory: &Path) -> bool {
    statfs(directory).is_ok_and(|found| found.f_type as u64 == BPF_FS)
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn on<T>(path: &Path, result: io::Result<T>) -> Result<T, ProgramsError> {
    result.map_err(|cause| ProgramsError::File {
        path: path.to_owned(),
        cause,
    })
}

/// Attaches the program of the kernel to a group, and pins it.
fn attach(group: &File, pin: &Path) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    };
    let file = marker().map_err(|error| text(&error))?;
    let mut loaded = Ebpf::load(&file).map_err(|error| text(&error))?;
    let program = loaded.program_mut(MARKER).ok_or("it has no program")?;
    let program: &mut CgroupSock = program.try_into().map_err(|error| text(&error))?;
    program.load().map_err(|error| text(&error))?;
    // A link is beside those of others, whatever its mode.
    let link = program.attach(group, CgroupAttachMode::Single);
    let link = link.and_then(|link| program.take_link(link));
    let link = link.map_err(|error| text(&error))?;
    let link = FdLink::try_from(link).map_err(|error| text(&error))?;
    link.pin(pin).map(drop).map_err(|error| text(&error))
}

/// The program of the kernel, as the file of a compiler:
/// `if (socket->protocol == MPTCP) return 0; socket->mark = MARK; return 1`.
fn marker() -> Result<Vec<u8>, object::write::Error> {
    let code = [
        instruction(0x61, 0x12, PROTOCOL_OFFSET, 0),
        instruction(0x55, 2, 2, MPTCP),
        instruction(0xb7, 0, 0, 0),
        instruction(0x95, 0, 0, 0),
        instruction(0xb7, 2, 0, MARK),
        instruction(0x63, 0x21, MARK_OFFSET, 0),
        instruction(0xb7, 0, 0, 1),
        instruction(0x95, 0, 0, 0),
    ];
    let code = code.concat();
    let mut file = Object::new(BinaryFormat::Elf, Architecture::Bpf, ENDIANNESS);
    let mut section = |name: &str, kind, content: &[u8]| {
        let section = file.add_section(Vec::new(), name.into(), kind);
        file.append_section_data(section, content, 8);
        section
    };
    section("license", SectionKind::Data, b"Dual MIT/GPL\0");
    let section = section("cgroup/sock_create", SectionKind::Text, &code);
    file.add_symbol(Symbol {
        name: MARKER.into(),
        value: 0,
        size: code.len() as u64,
        kind: SymbolKind::Text,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
    file.write()
}

/// That of this machine, which its kernel expects.
const ENDIANNESS: Endianness = match cfg!(target_endian = "big") {
    true => Endianness::Big,
    false => Endianness::Little,
};

/// An instruction (RFC 9669, section 3): `registers` has the destination in its low bits, and the source.
fn instruction(code: u8, registers: u8, offset: i16, immediate: u32) -> [u8; 8] {
    // Big-endian machines have the two registers in the other order.
    let registers = match ENDIANNESS {
        Endianness::Big => registers.rotate_left(4),
        Endianness::Little => registers,
    };
    let [a, b] = offset.to_ne_bytes();
    let [c, d, e, f] = immediate.to_ne_bytes();
    [code, registers, a, b, c, d, e, f]
}
