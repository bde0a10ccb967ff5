//! The beginning of a QUIC connection (RFC 9001).

use marline_proto::inspect::PacketKeys;
use marline_wire::packet::{Packet, ProtectedHeader, ProtectedKind, bits::FIXED, parse};
use marline_wire::{ConnectionId, Frame, Frames, Reader, Side, Version};

use super::assembly::Assembly;
use super::messages::{self, Message};
use super::{End, HttpVersion, LabelSource, Labels, Progress, QuicVersion};
use crate::keylog::{HandshakeSecrets, KeyLog};
use crate::limits::{MAX_CRYPTO, MAX_DATAGRAMS, MAX_PENDING};

/// The smallest 1-RTT packet without its connection ID: the first byte, four bytes of packet number and payload, and the sample
/// for header protection (RFC 9001, section 5.4.2).
const SMALLEST_SHORT: usize = 21;

/// A connection whose handshake is inspected.
#[derive(Debug)]
pub(crate) struct Quic {
    client: End,
    /// The destination ID of the client's first Initial packet, or of its first one after a Retry.
    dcid: ConnectionId,
    /// Keys of Initial packets in each version.
    initial: [Option<PacketKeys>; Version::ALL.len()],
    /// The ID chosen by the client, to which the server sends.
    client_id: ConnectionId,
    /// The ID chosen by the server, once it answered with an Initial packet.
    server_id: Option<ConnectionId>,
    client_hello: Stream,
    server_hello: Stream,
    /// The messages of both ends in Handshake packets.
    client_flight: Stream,
    server_flight: Stream,
    /// The random of the ClientHello, and whether all protocols that it offers are HTTP/3.
    hello: Option<Hello>,
    /// The number of the cipher suite, once the server has chosen it.
    cipher: Option<u16>,
    /// Handshake packets of the server that arrived before its ServerHello.
    pending: Vec<Vec<u8>>,
    datagrams: u32,
    /// The stage of the handshake, as shown by both ends.
    stage: Stage,
    /// The destination ID of the last 1-RTT packet of each end, client first, if not the first ID of its receiver.
    later_ids: [ConnectionId; 2],
}

/// The stage of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    /// The client sent 1-RTT packets: the handshake is complete for it (RFC 9001, section 4.1.1).
    ClientComplete,
    /// The server sent 1-RTT packets after that, or its key log decrypted the client's confirmation.
    Complete,
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

    /// Decrypts a packet in `scratch` and takes its CRYPTO frames. Returns whether it was decrypted.
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

/// The inputs of the inspection of a datagram.
pub(crate) struct Context<'a> {
    pub(crate) keys: &'a KeyLog,
    pub(crate) labels: &'a mut Labels,
    /// The buffer for decryption.
    pub(crate) scratch: &'a mut Vec<u8>,
}

/// The IDs that identify the packets of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuicIds {
    pub(crate) client: End,
    /// The destination ID of the client's first Initial packet, or of its first one after a Retry.
    dcid: ConnectionId,
    client_id: ConnectionId,
    /// The ID that the server chose, once it answered, and another one that the client uses.
    server: [Option<ConnectionId>; 2],
}

impl QuicIds {
    /// The IDs to which the client sends.
    pub(crate) fn server(&self) -> impl Iterator<Item = ConnectionId> + use<> {
        self.server.into_iter().flatten()
    }

    /// Whether a datagram may begin a connection.
    #[inline(always)]
    pub(crate) fn may_begin(datagram: &[u8]) -> bool {
        datagram.first().is_some_and(|first| first & 0xc0 == 0xc0)
    }

    /// Whether a datagram of `end` begins another connection.
    pub(crate) fn are_followed_by(&self, end: End, datagram: &[u8], scratch: &mut Vec<u8>) -> bool {
        let Ok(Packet::Protected(header)) = parse(datagram, 0, false) else {
            return false;
        };
        let repeats_id = !header.scid.is_empty() && header.scid == self.client_id;
        let is_known = header.dcid == self.dcid || self.server().any(|id| id == header.dcid);
        // With a token it may follow a Retry that was not captured.
        let may_be_retried = self.server[0].is_none() && !header.token(datagram).is_empty();
        end == self.client
            && !repeats_id
            && !is_known
            && !may_be_retried
            && first_initial(datagram, scratch).is_some()
    }
}

/// The header of a client's first Initial packet, if a datagram begins with one.
fn first_initial(datagram: &[u8], scratch: &mut Vec<u8>) -> Option<ProtectedHeader> {
    // Nearly all datagrams of other protocols and of later packets end here.
    if !QuicIds::may_begin(datagram) {
        return None;
    }
    let Ok(Packet::Protected(header)) = parse(datagram, 0, false) else {
        return None;
    };
    if !matches!(header.kind, ProtectedKind::Initial { .. }) {
        return None;
    }
    let keys = PacketKeys::initial(header.version?, &header.dcid);
    let packet = datagram.get(..header.len)?;
    Stream::new()
        .on_packet(&keys, Side::Client, &header, packet, scratch)
        .then_some(header)
}

impl Quic {
    /// The connection that a datagram of `end` begins, if any.
    pub(crate) fn begin(end: End, datagram: &[u8], scratch: &mut Vec<u8>) -> Option<Self> {
        let header = first_initial(datagram, scratch)?;
        Some(Self {
            client: end,
            dcid: header.dcid,
            initial: [None, None],
            client_id: header.scid,
            server_id: None,
            client_hello: Stream::new(),
            server_hello: Stream::new(),
            client_flight: Stream::new(),
            server_flight: Stream::new(),
            hello: None,
            cipher: None,
            pending: Vec::new(),
            datagrams: 0,
            stage: Stage::Begun,
            later_ids: [ConnectionId::EMPTY; 2],
        })
    }

    /// The end that is the client.
    pub(crate) fn client(&self) -> End {
        self.client
    }

    /// The IDs that identify its packets.
    pub(crate) fn ids(&self) -> QuicIds {
        let [later_id, _] = self.later_ids;
        QuicIds {
            client: self.client,
            dcid: self.dcid,
            client_id: self.client_id,
            server: [self.server_id, Some(later_id).filter(|id| !id.is_empty())],
        }
    }

    /// The number of bytes of memory in use.
    pub(crate) fn held(&self) -> usize {
        let streams = [
            &self.client_hello,
            &self.server_hello,
            &self.client_flight,
            &self.server_flight,
        ];
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
        let is_client = end == self.client;
        let mut first = None;
        let mut rest = datagram;
        // A packet may be followed by bytes that its receiver discards (RFC 9000, sections 12.2 and 14.1).
        while let Ok(Packet::Protected(header)) = parse(rest, 0, true) {
            let (packet, after) = rest.split_at(header.len.min(rest.len()));
            rest = after;
            if header.kind == ProtectedKind::Short {
                self.on_short(is_client, packet, first.is_some());
                break;
            }
            if *first.get_or_insert(header.dcid) == header.dcid {
                self.on_long(is_client, &header, packet, context);
            }
            if rest.is_empty() {
                break;
            }
        }
        self.conclude(context)
    }

    fn on_long(
        &mut self,
        is_client: bool,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) {
        match (header.kind, is_client) {
            (ProtectedKind::Initial { .. }, true) => {
                self.on_client_initial(header, packet, context);
            }
            (ProtectedKind::Initial { .. }, false) => {
                self.on_server_initial(header, packet, context);
            }
            (ProtectedKind::Handshake, true) => {
                self.on_client_handshake(header, packet, context);
            }
            (ProtectedKind::Handshake, false) => {
                self.on_server_handshake(header, packet, context);
            }
            _ => {}
        }
    }

    /// A packet with a short header, which is a 1-RTT packet if it goes to an ID of its receiver.
    fn on_short(&mut self, is_client: bool, packet: &[u8], is_behind_another: bool) {
        let Some(server_id) = self.server_id else {
            return;
        };
        let id = if is_client { server_id } else { self.client_id };
        let later_id = &mut self.later_ids[usize::from(!is_client)];
        let Some((to, _)) = packet[1..].split_at_checked(id.len()) else {
            return;
        };
        let is_addressed = match to {
            // Only the fixed bit identifies it, which an end may clear (RFC 9287).
            [] => packet[0] & FIXED != 0,
            to if *to == *id => true,
            // All in a datagram go to one ID (RFC 9000, section 12.2), and there is no other in Initial packets.
            _ if is_behind_another => false,
            // Some change to another ID at once, which then recurs.
            to => {
                let recurs = *to == **later_id;
                *later_id = ConnectionId::new(to).unwrap_or_default();
                recurs
            }
        };
        if !is_addressed || packet.len() < SMALLEST_SHORT + id.len() {
            return;
        }
        self.stage = match (self.stage, is_client) {
            (Stage::Begun, true) => Stage::ClientComplete,
            (Stage::ClientComplete, false) => Stage::Complete,
            (stage, _) => stage,
        };
    }

    /// The labels that the packets so far show. Only a protocol offered by the client can have been chosen, because QUIC requires
    /// one (RFC 9001, section 8.1).
    fn conclude(&mut self, context: &mut Context<'_>) -> Progress {
        let (Some(hello), Stage::Complete) = (self.hello, self.stage) else {
            return Progress::Continues;
        };
        if context.labels.alpn_chosen.is_some() {
            context.labels.confirm(LabelSource::KeyLog);
            return Progress::Done;
        }
        if hello.offers_only_h3 {
            context.labels.show(HttpVersion::H3);
        }
        Progress::while_any(context.keys.handshake(&hello.random).is_some())
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
        if self.server_id.is_none() {
            context.labels.quic_version = Some(QuicVersion::of(version));
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
        let Some(version) = header.version else {
            return;
        };
        // Once the server has answered, more is needed only with secrets.
        if self.cipher.is_some() || self.server_id.is_some() && context.keys.is_empty() {
            return;
        }
        self.initial_keys(version);
        let [v1, v2] = &self.initial;
        let keys = if version == Version::V2 { v2 } else { v1 };
        let Some(keys) = keys else { return };
        let opened =
            self.server_hello
                .on_packet(keys, Side::Server, header, packet, context.scratch);
        if opened {
            self.server_id.get_or_insert(header.scid);
            context.labels.quic_version = Some(QuicVersion::of(version));
        }
        if let Ok(hello) = messages::find_server_hello(self.server_hello.assembly.whole()) {
            self.cipher = Some(hello.cipher);
            self.server_hello.assembly.clear();
            for packet in std::mem::take(&mut self.pending) {
                if let Ok(Packet::Protected(header)) = parse(&packet, 0, true) {
                    self.on_server_handshake(&header, &packet, context);
                }
            }
        }
    }

    /// The keys of Handshake packets, if their secrets are known.
    fn handshake_keys(&self, header: &ProtectedHeader, keys: &KeyLog) -> Option<PacketKeys> {
        let HandshakeSecrets { client, server } = keys.handshake(&self.hello?.random)?;
        PacketKeys::handshake(header.version?, self.cipher?, client, server)
    }

    fn on_server_handshake(
        &mut self,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) {
        let Some(keys) = self.handshake_keys(header, context.keys) else {
            let is_early = self.cipher.is_none() && !context.keys.is_empty();
            if is_early && self.pending.len() < MAX_PENDING {
                self.pending.push(packet.to_vec());
            }
            return;
        };
        self.server_flight
            .on_packet(&keys, Side::Server, header, packet, context.scratch);
        let mut reader = Reader::new(self.server_flight.assembly.whole());
        if let Ok(Message::EncryptedExtensions(Some(protocol))) = messages::next(&mut reader) {
            context.labels.choose(protocol);
        }
    }

    /// The client's Finished, which follows that of the server, completes the handshake.
    fn on_client_handshake(
        &mut self,
        header: &ProtectedHeader,
        packet: &[u8],
        context: &mut Context<'_>,
    ) {
        let Some(keys) = self.handshake_keys(header, context.keys) else {
            return;
        };
        self.client_flight
            .on_packet(&keys, Side::Client, header, packet, context.scratch);
        let is_finished = |message: &Message<'_>| matches!(message, Message::Finished);
        if messages::any(self.client_flight.assembly.whole(), is_finished) {
            self.stage = Stage::Complete;
        }
    }
}

#[cfg(test)]
mod tests;
