//! An interface of a host: a TUN device, whose other side is the driver of this process.
//!
//! Offloads stay off, so that the kernel segments what it sends: the link must see packets of the MTU, not of
//! 64 KiB.

use std::io::{self, Write};
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Command, Stdio};

use tun_rs::{DeviceBuilder, SyncDevice};

use super::ip::MTU;
use super::{EmuError, Namespace};

/// Packets that the device queues for a driver that is late. Queues of link models are elsewhere.
const QUEUE: u32 = 10_000;

/// A device inside a namespace; it is removed when this is dropped.
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
            _ => EmuError::system("opening a TUN device")(error),
        })?;
        Ok(Self { device, address })
    }

    /// The host's address on this device.
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

    /// Delivers one packet to the host.
    ///
    /// # Errors
    /// The host does not accept it: its header is invalid, or the device is down.
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

/// Another host's address, and how to reach it.
pub(super) struct Neighbor {
    pub(super) address: Ipv4Addr,
    /// The address of this host that is nearest to it.
    pub(super) nearest: Option<Ipv4Addr>,
}

/// Sets the addresses of a host's devices, and adds routes from each of these to all `neighbors`. There are
/// no other routes, so that connecting to any other address fails at once.
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
        for &Neighbor {
            address: neighbor,
            nearest,
        } in neighbors
        {
            let route = format!("route add {neighbor}/32 dev {name} src {address}");
            batch += &format!("{route} table {table}\n");
            // The source address of sockets that are not bound to one.
            if nearest == Some(address) {
                batch += &format!("{route}\n");
            }
        }
    }
    namespace
        .inside(|| {
            set_sysctls();
            run_ip(&batch)
        })
        .map_err(EmuError::system("entering a network namespace"))?
}

/// Configures the kernel's network stack in the namespace: no IPv6, which would send packets of its own; no
/// reverse-path filter, which would drop packets of other interfaces; and no metrics kept from one connection
/// for the next.
fn set_sysctls() {
    for (setting, value) in [
        ("ipv6/conf/all/disable_ipv6", "1"),
        ("ipv6/conf/default/disable_ipv6", "1"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/tcp_no_metrics_save", "1"),
        ("ipv4/ping_group_range", "0 2147483647"),
    ] {
        // Settings that this kernel does not have are skipped.
        let _ = std::fs::write(format!("/proc/sys/net/{setting}"), value);
    }
}

/// Runs `ip` with a batch of commands.
pub(super) fn run_ip(batch: &str) -> Result<(), EmuError> {
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
    let message = String::from_utf8_lossy(&output.stderr);
    Err(failed(
        message.lines().next().unwrap_or_default().to_owned(),
    ))
}
