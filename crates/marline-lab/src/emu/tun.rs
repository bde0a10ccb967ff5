//! A host's interface: a TUN device, whose wire is this process.
//!
//! Offloads stay off: the kernel cuts what it sends into packets before it hands them over, so that
//! the link sees, delays and loses packets, and not packets of 64 KiB that are none.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use tun_rs::{DeviceBuilder, SyncDevice};

use super::ip::MTU;
use super::{EmuError, Namespace};

/// Packets that the device keeps for a driver that is late. No model's queue: that is elsewhere.
const QUEUE: u32 = 10_000;

/// A device inside a namespace; it is gone when this is dropped.
pub(super) struct Tun {
    device: SyncDevice,
    address: Ipv4Addr,
}

impl Tun {
    /// The `index`th device of a namespace.
    pub(super) fn open(
        namespace: &Namespace,
        index: usize,
        address: Ipv4Addr,
    ) -> Result<Self, EmuError> {
        if !Path::new("/dev/net/tun").exists() {
            return Err(EmuError::NoTun);
        }
        let open = || {
            let device = DeviceBuilder::new()
                .name(name(index))
                .enable(false)
                .build_sync()?;
            device.set_nonblocking(true)?;
            Ok(device)
        };
        let device = namespace
            .inside(open)
            .map_err(EmuError::system("entering a network namespace"))?;
        let device = device.map_err(|error: io::Error| match error.kind() {
            io::ErrorKind::PermissionDenied => EmuError::TunDenied(error),
            io::ErrorKind::NotFound => EmuError::NoTun,
            _ => EmuError::system("a TUN device")(error),
        })?;
        Ok(Self { device, address })
    }

    /// Where the host is reached through it.
    pub(super) const fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Reads one packet that the host sent.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if there is none.
    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.device.recv(buffer)
    }

    /// Hands the host one packet.
    ///
    /// # Errors
    /// The host does not take it: a header that is broken, a device that is down.
    pub(super) fn write(&self, packet: &[u8]) -> io::Result<usize> {
        self.device.send(packet)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

fn name(index: usize) -> String {
    format!("link{index}")
}

/// An address of another host, and of this host's own the one that is nearest to it.
pub(super) type Neighbor = (Ipv4Addr, Option<Ipv4Addr>);

/// Gives the devices of a host their addresses, and routes from each of these to all `neighbors`. There
/// is no route to anywhere else, so that nobody waits for an answer that cannot come.
pub(super) fn configure(
    namespace: &Namespace,
    tuns: &[Tun],
    neighbors: &[Neighbor],
) -> Result<(), EmuError> {
    let mut batch = "link set lo up\n".to_owned();
    for (index, tun) in tuns.iter().enumerate() {
        let (name, address, table) = (name(index), tun.address(), 100 + index);
        batch += &format!(
            "addr add {address}/32 dev {name}\n\
             link set {name} mtu {MTU} txqueuelen {QUEUE} up\n\
             rule add from {address} table {table}\n"
        );
        for &(neighbor, nearest) in neighbors {
            let route = format!("route add {neighbor}/32 dev {name} src {address}");
            batch += &format!("{route} table {table}\n");
            // Whoever has not chosen an address gets this one.
            if nearest == Some(address) {
                batch += &format!("{route}\n");
            }
        }
    }
    namespace
        .inside(|| {
            settle();
            run_ip(&batch)
        })
        .map_err(EmuError::system("entering a network namespace"))?
}

/// What a namespace of its own should not do: speak IPv6 on its own account, refuse what comes through
/// another interface than it would answer by, and remember paths from one transfer to the next.
fn settle() {
    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/ping_group_range", "0 2147483647"),
    ] {
        // A kernel without one of these has no need of it.
        let _ = std::fs::write(format!("/proc/sys/net/{setting}"), value);
    }
}

/// Runs `ip` once for many commands.
fn run_ip(batch: &str) -> Result<(), EmuError> {
    let failed = |message: String| EmuError::Tool {
        tool: "ip",
        message,
        package: "iproute2",
    };
    let run = || {
        let mut ip = Command::new("ip")
            .args(["-batch", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = ip.stdin.take() {
            stdin.write_all(batch.as_bytes())?;
        }
        ip.wait_with_output()
    };
    let output = run().map_err(|error: io::Error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(failed(said.lines().next().unwrap_or_default().to_owned()))
}
