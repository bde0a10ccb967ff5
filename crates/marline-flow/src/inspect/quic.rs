//! The beginning of a QUIC connection (RFC 9001).

use marline_proto::inspect::PacketKeys;
use marline_wire::packet::{Packet, ProtectedHeader, ProtectedKind, parse};
use marline_wire::{ConnectionId, Frame, Frames, Reader, Side, Version};

use super::assembly::Assembly;
use super::messages::{self, Message};
use super::tcp::server_hello;
use super::{End, HttpVersion, Label, LabelSource, Labels, Progress};
use crate::keylog::KeyLog;
use crate::limits::{MAX_CRYPTO, MAX_DATAGRAMS, MAX_PENDING};

/// A connection whose handshake is looked at.
#[derive(Debug)]
pub(crate) struct Quic {
    client: End,
    /// The destination ID of the client's first Initial packet, or of its first one after a Retry.
    dcid: ConnectionId,
    /// Keys of Initial packets in each version.
    initial: [Option<PacketKeys>; Version::ALL.len()],
    client_hello: Stream,
    server_hello: Stream,
    /// What the server sends in Handshake packets.
    server_flight: Stream,
    /// The random of the ClientHello, and whether all protocols that it offers are HTTP/3.
    hello: Option<Hello>,
    /// The number of the cipher suite, once the server has chosen it.
    cipher: Option<u16>,
    /// Handshake packets of the server that came before its ServerHello.
    pending: Vec<Vec<u8>>,
    datagrams: u32,
}

#[derive(Clone, Copy, Debug)]
struct Hello {
    random: [u8; 32],
    offers_only_h3: bool,
}

/// A CRYPTO stream, and the largest number of its packets.
#[derive(Debug)]
struct Stream {
    assembly: Assembly,
    largest: Option<u64>,
}

impl Stream {
    fn new() -> Self {
        Self {
            assembly: Assembly::new(MAX_CRYPTO),
            largest: None,
        }
    }

    /// Opens a packet in `scratch` and takes its CRYPTO frames. Whether it was opened.
    fn on_packet(
        &mut self,
        keys: &PacketKeys,
        sender: Side,
        header: &ProtectedHeader,
        packet: &[u8],
        scratch: &mut Vec<u8>,
    ) -> bool {
        scratch.clear();
        scratch.extend_from_slice(packet);
        let Some(opened) = keys.open(sender, header, self.largest, scratch) else {
            return false;
        };
        self.largest = self.largest.max(Some(opened.number));
        for frame in Frames::new(opened.payload).map_while(Result::ok) {
            if let Frame::Crypto(crypto) = frame {
                let offset = usize::try_from(crypto.offset).unwrap_or(usize::MAX);
                self.assembly.insert(offset, crypto.data);
            }
        }
        true
    }
}

/// What the inspection of a datagram needs.
pub(crate) struct Context<'a> {
    pub(crate) keys: &'a KeyLog,
    pub(crate) labels: &'a mut Labels,
    /// Packets are opened in it.
    pub(crate) scratch: &'a mut Vec<u8>,
}

impl Quic {
    /// The connection that a datagram of `end` begins; `None` if it begins none.
    pub(crate) fn begin(end: End, datagram: &[u8], context: &mut Context<'_>) -> Option<Self> {
        // Nearly all datagrams of other protocols and of later packets end here.
        if datagram.first()? & 0xc0 != 0xc0 {
            return None;
        }
        let Ok(Packet::Protected(header)) = parse(datagram, 0, false) else {
            return None;
        };
        if !matches!(header.kind, ProtectedKind::Initial { .. }) {
            return None;
        }
        let mut quic = Self {
            client: end,
            dcid: header.dcid,
            initial: [None, None],
            client_hello: Stream::new(),
            server_hello: Stream::new(),
            server_flight: Stream::new(),
            hello: None,
            cipher: None,
            pending: Vec::new(),
            datagrams: 0,
        };
        let keys = quic.initial_keys(header.version?);
        let packet = datagram.get(..header.len)?;
        Stream::new()
            .on_packet(keys, Side::Client, &header, packet, context.scratch)
            .then_some(quic)
    }

    /// Which end is the client.
    pub(crate) fn client(&self) -> End {
        self.client
    }

    /// How many bytes of memory it holds.
    pub(crate) fn held(&self) -> usize {
        let streams = [&self.client_hello, &self.server_hello, &self.server_flight];
        let streams: usize = streams.iter().map(|stream| stream.assembly.held()).sum();
        streams + self.pending.iter().map(Vec::capacity).sum::<usize>() + size_of::<Self>()
    }

    /// `end` sent a datagram.
    pub(crate) fn on_datagram(
        &mut self,
        end: End,
        datagram: &[u8],
        context: &mut Context<'_>,
    ) -> Progress {
        self.datagrams += 1;
        if self.datagrams > MAX_DATAGRAMS {
            return Progress::Done;
        }
        let mut rest = datagram;
        while let Ok(Packet::Protected(header)) = parse(rest, 0, true) {
            let (packet, after) = rest.split_at(header.len.min(rest.len()));
            rest = after;
            let is_client = end == self.client;
            match header.kind {
                ProtectedKind::Initial { .. } if is_client => {
                    self.on_client_initial(&header, packet, context);
                }
                ProtectedKind::Initial { .. } => self.on_server_initial(&header, packet, context),
                ProtectedKind::Handshake
                    if !is_client
                        && self.on_server_handshake(&header, packet, context) == Progress::Done =>
                {
                    return Progress::Done;
                }
                ProtectedKind::Short if is_client => return self.on_client_data(context),
                _ => {}
            }
            if rest.is_empty() {
                break;
            }
        }
        Progress::Continues
    }

    fn initial_keys(&mut self, version: Version) -> &PacketKeys {
        let slot = &mut self.initial[usize::from(version == Version::V2)];
        slot.get_or_insert_with(|| PacketKeys::initial(version, &self.dcid))
    }

    fn on_client_initial(
        &mut self,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) {
        let Some(version) = header.version else {
            return;
        };
        self.initial_keys(version);
        let [v1, v2] = &self.initial;
        let keys = if version == Version::V2 { v2 } else { v1 };
        let Some(keys) = keys else { return };
        let opened =
            self.client_hello
                .on_packet(keys, Side::Client, header, packet, context.scratch);
        // After a Retry the client derives its keys anew, and begins again.
        if !opened && header.dcid != self.dcid {
            let keys = PacketKeys::initial(version, &header.dcid);
            let mut again = Stream::new();
            if again.on_packet(&keys, Side::Client, header, packet, context.scratch) {
                self.dcid = header.dcid;
                self.initial = [None, None];
                self.client_hello = again;
                self.server_hello = Stream::new();
            }
        }
        if self.hello.is_some() {
            return;
        }
        let mut reader = Reader::new(self.client_hello.assembly.whole());
        if let Ok(Message::ClientHello(hello)) = messages::next(&mut reader) {
            let protocols = hello.protocols();
            let is_h3 = |id: &&[u8]| HttpVersion::of_protocol(id) == HttpVersion::H3;
            self.hello = Some(Hello {
                random: hello.random,
                offers_only_h3: !protocols.is_empty() && protocols.iter().all(is_h3),
            });
            context.labels.on_hello(&hello);
            self.client_hello.assembly.clear();
        }
    }

    fn on_server_initial(
        &mut self,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) {
        let (Some(version), None) = (header.version, self.cipher) else {
            return;
        };
        // Without secrets, nothing that the server sends can be read but what it confirms.
        if context.keys.is_empty() {
            return;
        }
        self.initial_keys(version);
        let [v1, v2] = &self.initial;
        let keys = if version == Version::V2 { v2 } else { v1 };
        let Some(keys) = keys else { return };
        self.server_hello
            .on_packet(keys, Side::Server, header, packet, context.scratch);
        if let Ok(hello) = server_hello(self.server_hello.assembly.whole()) {
            self.cipher = Some(hello.cipher);
            self.server_hello.assembly.clear();
            for packet in std::mem::take(&mut self.pending) {
                if let Ok(Packet::Protected(header)) = parse(&packet, 0, true) {
                    self.on_server_handshake(&header, &packet, context);
                }
            }
        }
    }

    fn on_server_handshake(
        &mut self,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) -> Progress {
        let (Some(version), Some(hello)) = (header.version, self.hello) else {
            return Progress::Continues;
        };
        let Some(server) = context.keys.server(&hello.random) else {
            return Progress::Continues;
        };
        let Some(cipher) = self.cipher else {
            if self.pending.len() < MAX_PENDING {
                self.pending.push(packet.to_vec());
            }
            return Progress::Continues;
        };
        // What the client sends is not opened.
        let Some(keys) = PacketKeys::handshake(version, cipher, server, server) else {
            return Progress::Continues;
        };
        self.server_flight
            .on_packet(&keys, Side::Server, header, packet, context.scratch);
        let mut reader = Reader::new(self.server_flight.assembly.whole());
        if let Ok(Message::EncryptedExtensions(protocol)) = messages::next(&mut reader) {
            if let Some(protocol) = protocol {
                context.labels.choose(protocol, LabelSource::KeyLog);
            }
            return Progress::Done;
        }
        Progress::Continues
    }

    /// The client sent a 1-RTT packet: the handshake was complete for it. Only a protocol that it offers can have been
    /// chosen, because QUIC has none without (RFC 9001, section 8.1).
    fn on_client_data(&mut self, context: &mut Context<'_>) -> Progress {
        let Some(hello) = self.hello else {
            return Progress::Continues;
        };
        if hello.offers_only_h3 && context.labels.label.is_none() {
            context.labels.label = Some(Label {
                version: HttpVersion::H3,
                source: LabelSource::Handshake,
            });
        }
        let opens = context.keys.server(&hello.random).is_some();
        match opens && context.labels.alpn_chosen.is_none() {
            true => Progress::Continues,
            false => Progress::Done,
        }
    }
}

#[cfg(test)]
mod tests;
