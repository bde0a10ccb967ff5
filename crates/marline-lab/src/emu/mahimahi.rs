//! Logs in the format of Mahimahi's link shell, for scripts that read it.
//!
//! Each event of a packet is one line, with the time in milliseconds: `T + BYTES` when it is sent, `T - BYTES
//! DELAY` when it arrives, `T d 1 BYTES` when it is lost. The delay is that of the whole path, not of the
//! queue alone. There are no lines for delivery opportunities (`T # BYTES`), which most link models do not
//! have.

use std::io::{self, Write};
use std::net::IpAddr;

use marline_sim::fabric::{Fabric, Node, PacketEvent, Routed, Verdict};

use super::IpPacket;

/// The log of what one host sends.
#[derive(Debug)]
pub struct MahimahiLog<W> {
    out: W,
    from: Node,
    addresses: Vec<IpAddr>,
    hosts: Vec<(IpAddr, Node)>,
}

impl<W: Write> MahimahiLog<W> {
    /// Starts the log of the packets that `from` sends through `fabric`.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W, fabric: &Fabric<IpPacket>, from: Node) -> io::Result<Self> {
        writeln!(out, "# marline, from {}", fabric.name(from))?;
        writeln!(out, "# init timestamp: 0")?;
        writeln!(out, "# base timestamp: 0")?;
        let hosts = fabric.nodes().flat_map(|node| {
            let addresses = fabric.addresses(node).iter();
            addresses.map(move |address| (*address, node))
        });
        Ok(Self {
            out,
            from,
            addresses: fabric.addresses(from).to_vec(),
            hosts: hosts.collect(),
        })
    }

    /// Writes the line of a passage that a [`Tap`](marline_sim::fabric::Tap) observed, if the packet is of
    /// this host.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn passage(&mut self, passage: &PacketEvent<'_, IpPacket>) -> io::Result<()> {
        let packet = passage.packet;
        if !self.addresses.contains(&packet.body.source()) {
            return Ok(());
        }
        let millis = passage.at.as_nanos() / 1_000_000;
        let size = packet.size;
        match passage.verdict {
            Verdict::Entered if passage.from == self.from => {
                writeln!(self.out, "{millis} + {size}")
            }
            Verdict::Left if self.is_end(passage) => {
                let delay = passage.at.since(packet.body.sent()).as_millis();
                writeln!(self.out, "{millis} - {size} {delay}")
            }
            Verdict::Dropped(_) => writeln!(self.out, "{millis} d 1 {size}"),
            Verdict::Entered | Verdict::Left => Ok(()),
        }
    }

    /// Whether the packet has arrived at its destination rather than at a router.
    fn is_end(&self, passage: &PacketEvent<'_, IpPacket>) -> bool {
        let destination = passage.packet.body.destination();
        let mut hosts = self.hosts.iter();
        hosts.any(|&(address, node)| address == destination && Some(node) == passage.to)
    }
}
