//! Reading captures: pcap and pcapng, from a file or a pipe, compressed by gzip or not.

mod error;
mod gzip;
mod input;
mod link;
#[cfg(target_os = "linux")]
mod live;
mod pcap;
mod pcapng;
mod secrets;

use std::fs::File;
use std::io::Read;
use std::path::Path;

pub use error::{CaptureError, Problem};
pub use link::LinkType;
#[cfg(target_os = "linux")]
pub use live::{Live, LiveError};

use input::Input;
use pcap::Pcap;
use pcapng::Pcapng;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The type of its first bytes.
    pub link: LinkType,
    /// Its length on the link, in bytes; at least that of `data`.
    pub length: usize,
    /// Its captured bytes, from the first.
    pub data: &'a [u8],
}

/// A part of a capture. Parts come in the order of the file.
#[derive(Clone, Copy, Debug)]
pub enum Item<'a> {
    /// A packet.
    Packet(Packet<'a>),
    /// A line of a key log of TLS (RFC 9850). Captures in pcapng may have them in Decryption Secrets Blocks
    /// (draft-ietf-opsawg-pcapng, section 4.7), before the packets that they open.
    KeyLogLine(&'a [u8]),
}

/// A capture that is read packet by packet.
#[derive(Debug)]
pub struct Capture<R> {
    name: String,
    input: Input<R>,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    Pcapng(Pcapng),
}

impl Capture<File> {
    /// Opens a file.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] if it cannot be read, or is not a capture.
    pub fn open(path: &Path) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        match File::open(path) {
            Ok(file) => Self::new(file, name),
            Err(error) => Err(CaptureError::new(name, Problem::Io(error))),
        }
    }
}

impl<R: Read> Capture<R> {
    /// Reads the beginning of a capture; `name` stands for it in errors.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] if it cannot be read, or is not a capture.
    pub fn new(source: R, name: impl Into<String>) -> Result<Self, CaptureError> {
        let name = name.into();
        let mut input = match Input::new(source) {
            Ok(input) => input,
            Err(error) => return Err(CaptureError::new(name, Problem::Io(error))),
        };
        match Format::of(&mut input) {
            Ok(format) => Ok(Self {
                name,
                input,
                format,
            }),
            Err(problem) => Err(CaptureError::new(name, problem)),
        }
    }

    /// The next packet, or line of a key log; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`CaptureError`] if the capture ends within a packet, is malformed, or has a link type that is not known. Nothing
    /// more can be read after an error.
    #[expect(
        clippy::should_implement_trait,
        reason = "an item borrows from the buffer until the next"
    )]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, CaptureError> {
        // Written out, because each `map` of an item would copy it.
        let problem = match &mut self.format {
            Format::Pcap(pcap) => match pcap.next(&mut self.input) {
                Ok(Some(packet)) => return Ok(Some(Item::Packet(packet))),
                Ok(None) => return Ok(None),
                Err(problem) => problem,
            },
            Format::Pcapng(pcapng) => match pcapng.next(&mut self.input) {
                Ok(item) => return Ok(item),
                Err(problem) => problem,
            },
        };
        Err(CaptureError::new(self.name.clone(), problem))
    }

    /// The most interfaces of one section that packets came from so far. A packet that passes several is captured at each.
    pub const fn interfaces(&self) -> usize {
        match &self.format {
            Format::Pcap(_) => 1,
            Format::Pcapng(pcapng) => pcapng.used_interfaces(),
        }
    }

    /// The name that stands for it in errors.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of bytes read from the source, before decompression.
    pub fn position(&self) -> u64 {
        self.input.taken()
    }
}

/// The first bytes of gzip, bzip2, xz, zstd and lz4 files: content that is still compressed after decompression by gzip.
const COMPRESSED: [&[u8]; 5] = [
    &[0x1f, 0x8b],
    b"BZh",
    &[0xfd, b'7', b'z', b'X'],
    &[0x28, 0xb5, 0x2f, 0xfd],
    &[0x04, 0x22, 0x4d, 0x18],
];

impl Format {
    fn of<R: Read>(input: &mut Input<R>) -> Result<Self, Problem> {
        if !input.has(1)? {
            return Err(Problem::Empty);
        }
        if !input.has(4)? {
            return Err(Problem::NoCapture);
        }
        let magic = input.array::<4>(0);
        if let Some(pcap) = Pcap::of(magic) {
            return pcap.begin(input).map(Self::Pcap);
        }
        if magic == pcapng::SECTION_HEADER.to_be_bytes() {
            return Ok(Self::Pcapng(Pcapng::default()));
        }
        let is_compressed = COMPRESSED.iter().any(|first| magic.starts_with(first));
        Err(match is_compressed {
            true => Problem::Compressed,
            false => Problem::NoCapture,
        })
    }
}

/// The order of the bytes in a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ByteOrder {
    #[default]
    Little,
    Big,
}

impl ByteOrder {
    #[inline]
    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }

    #[inline]
    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests;
