//! The beginning of a TCP connection.

use marline_proto::inspect::RecordKey;
use marline_wire::Reader;

use super::alpn::{list, printable};
use super::assembly::Assembly;
use super::cleartext::Beginning;
use super::messages::{self, Message, NoMessage, ServerHello};
use super::records::{self, Plain};
use super::{End, Label, LabelSource, Labels, Progress, other};
use crate::keylog::KeyLog;
use crate::limits::{MAX_NAME, MAX_SEGMENTS, MAX_STREAM};

/// A connection whose beginning is looked at.
#[derive(Debug)]
pub(crate) struct Tcp {
    streams: [Stream; 2],
    segments: u32,
    /// Which end sent what a client sends.
    client: Option<End>,
    /// The random of the ClientHello, once it is known.
    random: Option<[u8; 32]>,
}

#[derive(Debug)]
struct Stream {
    /// The sequence number of the first byte.
    first: Option<u32>,
    assembly: Assembly,
}

impl Tcp {
    /// A connection whose ends sent SYNs with these sequence numbers, as far as they were seen.
    pub(crate) fn new(syns: [Option<u32>; 2]) -> Self {
        Self {
            streams: syns.map(|syn| Stream {
                first: syn.map(|syn| syn.wrapping_add(1)),
                assembly: Assembly::new(MAX_STREAM),
            }),
            segments: 0,
            client: None,
            random: None,
        }
    }

    /// Which end is the client, as far as its content shows.
    pub(crate) fn client(&self) -> Option<End> {
        self.client
    }

    /// How many bytes of memory it holds.
    pub(crate) fn held(&self) -> usize {
        self.streams
            .iter()
            .map(|stream| stream.assembly.held())
            .sum()
    }

    /// `end` sent a payload that begins with this sequence number.
    pub(crate) fn on_segment(
        &mut self,
        end: End,
        sequence: u32,
        payload: &[u8],
        keys: &KeyLog,
        labels: &mut Labels,
    ) -> Progress {
        self.segments += 1;
        if self.segments > MAX_SEGMENTS {
            return Progress::Done;
        }
        let stream = &mut self.streams[end];
        let first = *stream.first.get_or_insert(sequence);
        // What was sent before the first segment that is known has an offset that is far beyond the limit.
        let offset = sequence.wrapping_sub(first) as usize;
        if !stream.assembly.insert(offset, payload) {
            return Progress::Continues;
        }
        let full = stream.assembly.is_full();
        match self.advance(keys, labels) {
            Progress::Continues if full => Progress::Done,
            progress => progress,
        }
    }

    fn advance(&mut self, keys: &KeyLog, labels: &mut Labels) -> Progress {
        if self.random.is_none() {
            for end in 0..2 {
                if self.begin(end, labels) == Progress::Done {
                    return Progress::Done;
                }
            }
        }
        let (Some(client), Some(random)) = (self.client, self.random) else {
            return Progress::Continues;
        };
        let plain = Plain::of(self.streams[other(client)].assembly.whole());
        match server_hello(&plain.messages) {
            Err(NoMessage::Incomplete) if plain.continues => Progress::Continues,
            Err(_) => Progress::Done,
            Ok(hello) if hello.is_tls13 => {
                let secret = keys.server(&random);
                let Some(key) = secret.and_then(|secret| RecordKey::new(hello.cipher, secret))
                else {
                    return Progress::Done;
                };
                match plain.encrypted {
                    Some(stream) => encrypted_extensions(stream, key, labels),
                    None if plain.continues => Progress::Continues,
                    None => Progress::Done,
                }
            }
            Ok(hello) => {
                if let Some(protocol) = hello.protocol {
                    labels.choose(protocol, LabelSource::Handshake);
                }
                Progress::Done
            }
        }
    }

    /// Looks at the first bytes of `end`, before a ClientHello is known.
    fn begin(&mut self, end: End, labels: &mut Labels) -> Progress {
        let stream = self.streams[end].assembly.whole();
        let mut known = |client, version| {
            let source = LabelSource::Handshake;
            labels.label = Some(Label { version, source });
            self.client = Some(client);
            Progress::Done
        };
        match Beginning::of(stream) {
            Beginning::Incomplete => Progress::Continues,
            Beginning::Unknown => Progress::Done,
            Beginning::Request(version) => known(end, version),
            Beginning::Response(version) => known(other(end), version),
            Beginning::Tls => {
                let plain = Plain::of(stream);
                match messages::next(&mut Reader::new(&plain.messages)) {
                    Ok(Message::ClientHello(hello)) => {
                        self.client = Some(end);
                        self.random = Some(hello.random);
                        labels.on_hello(&hello);
                        Progress::Continues
                    }
                    // The ServerHello may have overtaken it.
                    Ok(Message::ServerHello(_)) => Progress::Continues,
                    Err(NoMessage::Incomplete) if plain.continues => Progress::Continues,
                    _ => Progress::Done,
                }
            }
        }
    }
}

/// The ServerHello among messages that is not a HelloRetryRequest.
pub(super) fn server_hello(messages: &[u8]) -> Result<ServerHello<'_>, NoMessage> {
    let mut reader = Reader::new(messages);
    loop {
        match messages::next(&mut reader)? {
            Message::ServerHello(hello) if hello.is_retry => {}
            Message::ServerHello(hello) => return Ok(hello),
            _ => return Err(NoMessage::Malformed),
        }
    }
}

/// What EncryptedExtensions says, which is the first message of the server that is encrypted.
fn encrypted_extensions(stream: &[u8], key: RecordKey, labels: &mut Labels) -> Progress {
    let opened = records::open(stream, key);
    match messages::next(&mut Reader::new(&opened.messages)) {
        Ok(Message::EncryptedExtensions(protocol)) => {
            if let Some(protocol) = protocol {
                labels.choose(protocol, LabelSource::KeyLog);
            }
            Progress::Done
        }
        Err(NoMessage::Incomplete) if opened.continues => Progress::Continues,
        _ => Progress::Done,
    }
}

impl Labels {
    pub(super) fn on_hello(&mut self, hello: &messages::ClientHello<'_>) {
        let name = hello
            .server_name
            .filter(|name| (1..=MAX_NAME).contains(&name.len()));
        self.sni = name.map(|name| printable(name).to_ascii_lowercase().into());
        let protocols = hello.protocols();
        self.alpn_offered = (!protocols.is_empty()).then(|| list(&protocols).into());
    }
}
