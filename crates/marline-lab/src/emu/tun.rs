//! An interface of a host: a TUN device, whose other side is the driver of this process.
//!
//! Offloads stay off, so that the kernel segments what it sends: the link must see packets of the MTU, not of
//! 64 KiB.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use nix::net::if_::if_nametoindex;
use tun_rs::{DeviceBuilder, SyncDevice};

use super::ip::MTU;
use super::routing::{DeviceSizes, LOOPBACK, MAIN, Route, Routing};
use super::{EmuError, Namespace};

/// The queue only covers delays of the driver. The queues of links are in their models.
const SIZES: DeviceSizes = DeviceSizes {
    mtu: MTU as u32,
    queue: 10_000,
};

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
    let configure = || -> Result<(), EmuError> {
        set_sysctls();
        let mut routing = Routing::open().map_err(EmuError::system("opening netlink"))?;
        routing
            .set_up(LOOPBACK)
            .map_err(EmuError::system("switching the loopback device on"))?;
        for (index, tun) in tuns.iter().enumerate() {
            let (address, table) = (tun.address(), 100 + index as u32);
            let device = if_nametoindex(name(index).as_str())
                .map_err(EmuError::system("looking for a device"))?;
            routing
                .add_address(device, address)
                .map_err(EmuError::system("giving a device its address"))?;
            routing
                .set_up_with(device, SIZES)
                .map_err(EmuError::system("switching a device on"))?;
            routing
                .add_rule(address, table)
                .map_err(EmuError::system("adding a rule"))?;
            for neighbor in neighbors {
                let route = Route {
                    to: neighbor.address,
                    device,
                    source: address,
                    table,
                };
                // The source address of sockets that are not bound to one.
                let is_nearest = neighbor.nearest == Some(address);
                let table = MAIN;
                let in_main = is_nearest.then_some(Route { table, ..route });
                for route in std::iter::once(route).chain(in_main) {
                    routing
                        .add_route(&route)
                        .map_err(EmuError::system("adding a route"))?;
                }
            }
        }
        Ok(())
    };
    namespace
        .inside(configure)
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
