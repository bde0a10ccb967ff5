//! The device by which a host sends packets into a tunnel, and gets those out of it.

use std::io;
use std::task::{Context, Poll};

pub use crate::offload::Burst;
use crate::offload::VIRTIO_HEADER;

/// A source and sink of IP packets.
pub trait Device: Send + Sync + 'static {
    /// Reads the next packet that the host sends, or several of a flow at once.
    ///
    /// # Errors
    /// The device is gone.
    fn poll_recv(&self, cx: &mut Context<'_>, burst: &mut Burst) -> Poll<io::Result<()>>;

    /// Delivers a packet to the host, without waiting.
    ///
    /// # Errors
    /// The host does not take it: it is dropped.
    fn send(&self, packet: &[u8]) -> io::Result<()>;

    /// Whether the host takes several packets of a flow as one, by [`send_with_header`](Self::send_with_header).
    fn takes_large(&self) -> bool {
        false
    }

    /// Delivers a packet with a header of virtio before it, without waiting.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn send_with_header(&self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes.get(VIRTIO_HEADER..).unwrap_or_default())
    }
}

#[cfg(target_os = "linux")]
pub use self::tun::{OpenError, Tun};

#[cfg(target_os = "linux")]
mod tun {
    use std::io::{self, IoSlice};
    use std::path::Path;
    use std::task::{Context, Poll, ready};

    use tun_rs::{AsyncDevice, DeviceBuilder};

    use super::{Burst, Device, VIRTIO_HEADER};

    /// The file by which Linux makes such devices.
    const TUN: &str = "/dev/net/tun";

    /// A TUN device of Linux. It is removed when this is dropped, and its addresses and routes with it.
    pub struct Tun {
        device: AsyncDevice,
        name: String,
        index: u32,
    }

    /// Why there is no device.
    #[derive(Debug, thiserror::Error)]
    pub enum OpenError {
        /// The kernel has none.
        #[error("there is no {TUN}; load the module with `modprobe tun`")]
        NoTun,
        /// The process has no right to.
        #[error(
            "no permission to make the network device {name}; run as root, or with CAP_NET_ADMIN"
        )]
        Denied {
            /// The name.
            name: String,
        },
        /// Another process has a device of this name.
        #[error(
            "the network device {name} is in use; is another tunnel running? Choose another name with --device"
        )]
        InUse {
            /// The name.
            name: String,
        },
        /// There is a device of this name, which is another one or would stay.
        #[error(
            "there is a network device {name} already; choose another name with --device, or remove it with `ip link delete {name}`"
        )]
        Exists {
            /// The name.
            name: String,
        },
        /// Another error of the system.
        #[error("cannot make the network device {name}: {cause}")]
        System {
            /// The name.
            name: String,
            /// The error.
            cause: io::Error,
        },
    }

    /// Whether this network namespace has a device of this name.
    fn is_device(name: &str) -> bool {
        let devices = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
        let mut names = devices.lines().filter_map(|line| line.split_once(':'));
        names.any(|(known, _)| known.trim() == name)
    }

    impl Tun {
        /// Makes a device, which is down and has no address. Needs a runtime of tokio.
        ///
        /// # Errors
        /// See [`OpenError`].
        pub fn open(name: &str) -> Result<Self, OpenError> {
            if !Path::new(TUN).exists() {
                return Err(OpenError::NoTun);
            }
            let exists = is_device(name);
            let open = || {
                let device = DeviceBuilder::new()
                    .name(name)
                    .enable(false)
                    .with(|options| {
                        options.offload(true);
                    })
                    .build_async()?;
                let index = device.if_index()?;
                Ok((device, index))
            };
            let (device, index) = open().map_err(|cause: io::Error| {
                let name = name.to_owned();
                match cause.kind() {
                    io::ErrorKind::PermissionDenied => OpenError::Denied { name },
                    io::ErrorKind::ResourceBusy => OpenError::InUse { name },
                    _ if exists => OpenError::Exists { name },
                    _ => OpenError::System { name, cause },
                }
            })?;
            if exists {
                // A persistent one: its addresses are others', and it would stay with the routes.
                return Err(OpenError::Exists {
                    name: name.to_owned(),
                });
            }
            Ok(Self {
                device,
                name: name.to_owned(),
                index,
            })
        }

        /// Its name.
        pub fn name(&self) -> &str {
            &self.name
        }

        /// Its number in the kernel.
        pub fn index(&self) -> u32 {
            self.index
        }
    }

    impl Device for Tun {
        fn poll_recv(&self, cx: &mut Context<'_>, burst: &mut Burst) -> Poll<io::Result<()>> {
            // The usual case needs no system call but this one.
            let read = match self.device.try_recv(burst.space()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.device.poll_recv(cx, burst.space()))?
                }
                read => read?,
            };
            Poll::Ready(burst.filled(read).map_err(io::Error::other))
        }

        fn send(&self, packet: &[u8]) -> io::Result<()> {
            let parts = [IoSlice::new(&[0; VIRTIO_HEADER]), IoSlice::new(packet)];
            self.device.try_send_vectored(&parts).map(drop)
        }

        fn takes_large(&self) -> bool {
            true
        }

        fn send_with_header(&self, bytes: &[u8]) -> io::Result<()> {
            self.device.try_send(bytes).map(drop)
        }
    }
}
