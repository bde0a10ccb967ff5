//! Captures for packet analyzers.
//!
//! The format is pcapng (draft-ietf-opsawg-pcapng) with raw IP packets, times in nanoseconds, and one
//! interface for each medium. A packet is recorded when it leaves a medium; one that is lost is
//! recorded on the medium and at the time of the loss, with the reason as a comment.

use std::io::{self, Write};

use super::{Fabric, PacketEvent, Verdict};

/// LINKTYPE_RAW: packets start with their IP header.
const RAW_IP: u16 = 101;

/// Maximum size of a packet that is recorded completely.
const MAX_PACKET: usize = 1 << 16;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const TIME_RESOLUTION: u16 = 9;

/// A capture file.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    /// The block being written; reused for its capacity.
    block: Vec<u8>,
    /// The interface after all media, of packets without a route.
    no_route: usize,
}

impl<W: Write> Capture<W> {
    /// Starts a capture of all media of `fabric`.
    ///
    /// # Errors
    /// If `out` cannot be written.
    pub fn new<B>(out: W, fabric: &Fabric<B>) -> io::Result<Self> {
        let mut capture = Self {
            out,
            block: Vec::new(),
            no_route: fabric.media().count(),
        };
        capture.begin(SECTION_HEADER);
        capture.put(&BYTE_ORDER_MAGIC.to_le_bytes());
        // Version 1.0, and a section of unknown length.
        capture.put(&1u16.to_le_bytes());
        capture.put(&0u16.to_le_bytes());
        capture.put(&u64::MAX.to_le_bytes());
        capture.end()?;
        for medium in fabric.media() {
            capture.interface(fabric.medium_name(medium))?;
        }
        capture.interface("nowhere")?;
        Ok(capture)
    }

    /// Records a passage if the packet leaves a medium or is lost. The parts of `packet` form the IP packet.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn passage<B>(&mut self, passage: &PacketEvent<'_, B>, packet: &[&[u8]]) -> io::Result<()> {
        let reason = match passage.verdict {
            Verdict::Entered => return Ok(()),
            Verdict::Left => None,
            Verdict::Dropped(reason) => Some(reason),
        };
        let medium = passage.medium;
        let interface = medium.map_or(self.no_route, |medium| medium.index());
        let len: usize = packet.iter().map(|piece| piece.len()).sum();
        self.begin(ENHANCED_PACKET);
        self.number(interface);
        let nanos = passage.at.as_nanos();
        self.put(&((nanos >> 32) as u32).to_le_bytes());
        self.put(&(nanos as u32).to_le_bytes());
        self.number(len.min(MAX_PACKET));
        self.number(len);
        let start = self.block.len();
        packet.iter().for_each(|piece| self.put(piece));
        self.block.truncate(start + MAX_PACKET);
        self.pad();
        if let Some(reason) = reason {
            self.option(COMMENT, format!("dropped: {reason}").as_bytes());
            self.option(END_OF_OPTIONS, &[]);
        }
        self.end()
    }

    /// Flushes `out`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns `out`.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn interface(&mut self, name: &str) -> io::Result<()> {
        self.begin(INTERFACE_DESCRIPTION);
        self.put(&RAW_IP.to_le_bytes());
        self.put(&[0; 2]);
        self.number(MAX_PACKET);
        self.option(INTERFACE_NAME, name.as_bytes());
        // Units of 10^-9 seconds.
        self.option(TIME_RESOLUTION, &[9]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    /// Starts a block: its type, its length, its content, and its length again.
    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.put(&kind.to_le_bytes());
        self.put(&[0; 4]);
    }

    fn end(&mut self) -> io::Result<()> {
        let len = u32::try_from(self.block.len() + 4).unwrap_or(u32::MAX);
        self.block[4..8].copy_from_slice(&len.to_le_bytes());
        self.put(&len.to_le_bytes());
        self.out.write_all(&self.block)
    }

    fn put(&mut self, bytes: &[u8]) {
        self.block.extend_from_slice(bytes);
    }

    fn number(&mut self, value: usize) {
        self.put(&u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes());
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.put(&code.to_le_bytes());
        self.put(&(value.len() as u16).to_le_bytes());
        self.put(value);
        self.pad();
    }

    /// Pads to a multiple of four bytes.
    fn pad(&mut self) {
        let padding = self.block.len().next_multiple_of(4) - self.block.len();
        self.put(&[0; 3][..padding]);
    }
}

#[cfg(test)]
mod tests;
