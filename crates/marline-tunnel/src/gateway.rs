//! The host of a server: its device, and what lets packets pass between it and other networks.

use std::fs;
use std::io;
use std::sync::Arc;

use ipnet::IpNet;

use crate::device::{self, Device, Tun};
use crate::nat::{Nat, NatError};
use crate::packet::MIN_MTU;
use crate::pool::Pool;
use crate::routing::{Family, Routing};

/// The device of a server, and its translation of addresses. Dropped, both are removed.
pub struct Gateway {
    config: GatewayConfig,
    own: Vec<IpNet>,
    tun: Arc<Tun>,
    nat: Option<Nat>,
}

/// The settings of the host of a server.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// The name of the network device.
    pub device: String,
    /// The largest packet to clients, at least [`MIN_MTU`]. Clients whose paths carry less are served with less.
    pub mtu: u16,
    /// Whether packets of clients get the address of the server.
    pub nat: bool,
}

/// Why a server has no device.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The MTU is too small.
    #[error("an MTU of {0} is below {MIN_MTU}, which IPv6 needs")]
    Mtu(u16),
    /// The kernel drops packets between networks.
    #[error(
        "this machine forwards no packets of {name}; switch that on with `sysctl -w {setting}=1`"
    )]
    NoForwarding {
        /// The protocol.
        name: &'static str,
        /// The setting of the kernel.
        setting: &'static str,
    },
    /// There is no device.
    #[error(transparent)]
    Device(#[from] device::OpenError),
    /// The device is not configured.
    #[error("cannot configure the network device {device}: {cause}")]
    Configure {
        /// The device.
        device: String,
        /// The reason.
        cause: io::Error,
    },
    /// There is no translation.
    #[error(transparent)]
    Nat(#[from] NatError),
}

impl Gateway {
    /// Makes a device for the server's addresses of `pool`, by which no packets pass before [`set_up`](Self::set_up).
    ///
    /// # Errors
    /// See [`GatewayError`].
    pub fn open(config: GatewayConfig, pool: &Pool) -> Result<Self, GatewayError> {
        if config.mtu < MIN_MTU {
            return Err(GatewayError::Mtu(config.mtu));
        }
        let own: Vec<_> = pool.own().collect();
        for address in &own {
            check_forwarding(Family::of(address.addr()))?;
        }
        let tun = Tun::open(&config.device)?;
        Ok(Self {
            config,
            own,
            tun: Arc::new(tun),
            nat: None,
        })
    }

    /// Gives the device its addresses and switches it on, and begins the translation of addresses.
    ///
    /// # Errors
    /// See [`GatewayError`].
    pub fn set_up(&mut self) -> Result<(), GatewayError> {
        let GatewayConfig { device, mtu, nat } = &self.config;
        configure(&self.tun, *mtu, &self.own).map_err(|cause| GatewayError::Configure {
            device: device.clone(),
            cause,
        })?;
        if *nat {
            self.nat = Some(Nat::new(device, &self.own)?);
        }
        Ok(())
    }

    /// Its device.
    pub fn device(&self) -> Arc<dyn Device> {
        Arc::clone(&self.tun) as _
    }
}

fn configure(tun: &Tun, mtu: u16, own: &[IpNet]) -> io::Result<()> {
    let setting = format!("/proc/sys/net/ipv6/conf/{}/addr_gen_mode", tun.name());
    // No link-local address: no client would answer. It fails where there is no IPv6.
    let _ = fs::write(setting, "1");
    let mut routing = Routing::open()?;
    routing.set_up(tun.index(), mtu)?;
    for address in own {
        routing.add_address(tun.index(), *address)?;
    }
    Ok(())
}

fn check_forwarding(family: Family) -> Result<(), GatewayError> {
    let (name, file, setting) = match family {
        Family::V4 => ("IPv4", "ipv4/ip_forward", "net.ipv4.ip_forward"),
        Family::V6 => (
            "IPv6",
            "ipv6/conf/all/forwarding",
            "net.ipv6.conf.all.forwarding",
        ),
    };
    match fs::read_to_string(format!("/proc/sys/net/{file}")) {
        Ok(value) if value.trim() != "0" => Ok(()),
        _ => Err(GatewayError::NoForwarding { name, setting }),
    }
}
