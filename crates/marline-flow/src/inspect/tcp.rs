//! The beginning of a TCP connection.

use marline_proto::inspect::RecordKey;
use marline_wire::Reader;

use super::alpn::{list, printable};
use super::assembly::Assembly;
use super::cleartext::{self, Beginning};
use super::messages::{self, Message, NoMessage};
use super::records::{self, Opened, Plain};
use super::{End, HttpVersion, Label, LabelSource, Labels, Progress, other};
use crate::keylog::{HandshakeSecrets, KeyLog};
use crate::limits::{MAX_NAME, MAX_SEGMENTS, MAX_STREAM};

/// A connection whose beginning is inspected.
#[derive(Debug)]
pub(crate) struct Tcp {
    streams: [Stream; 2],
    segments: u32,
    /// The end that sent a client's content.
    client: Option<End>,
    /// The random of the ClientHello, once it is known.
    random: Option<[u8; 32]>,
}

#[derive(Debug)]
struct Stream {
    /// Whether its SYN was seen, so that its first byte is known.
    has_beginning: bool,
    /// The sequence number of the first byte, or else of the first captured one.
    first: Option<u32>,
    assembly: Assembly,
    beginning: Beginning,
    /// Whether the end sent any content.
    has_content: bool,
}

impl Stream {
    /// Whether it began before the capture, and the other end, which sends `answer`, has acknowledged captured content.
    fn began_before(&self, answer: &Content<'_>) -> bool {
        let is_acknowledged = self
            .first
            .zip(answer.acknowledgment)
            .is_some_and(|(first, next)| (1..1 << 31).contains(&next.wrapping_sub(first)));
        let is_begun = self.has_beginning || answer.client_first.is_some();
        self.has_content && !is_begun && is_acknowledged
    }
}

/// A segment with content.
#[derive(Clone, Copy)]
pub(crate) struct Content<'a> {
    pub(crate) sender: End,
    /// The sequence number of its first byte.
    pub(crate) sequence: u32,
    /// The next sequence number it expects from the other end, if any.
    pub(crate) acknowledgment: Option<u32>,
    /// The sequence number of the client's first content, if a SYN-ACK showed it.
    pub(crate) client_first: Option<u32>,
    pub(crate) payload: &'a [u8],
    /// The ends whose packets were captured: of some connections only one direction passes the capture point.
    pub(crate) is_seen: [bool; 2],
}

impl Content<'_> {
    /// Whether the server that sends it may have received content of the client: a FIN alone counts as one byte.
    fn may_answer(&self) -> bool {
        match (self.client_first, self.acknowledgment) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(first), Some(next)) => (2..1 << 31).contains(&next.wrapping_sub(first)),
        }
    }
}

impl Tcp {
    /// A connection whose ends sent SYNs with these sequence numbers, as far as they were seen.
    pub(crate) fn new(syns: [Option<u32>; 2]) -> Self {
        Self {
            streams: syns.map(|syn| Stream {
                has_beginning: syn.is_some(),
                first: syn.map(|syn| syn.wrapping_add(1)),
                assembly: Assembly::new(MAX_STREAM),
                beginning: Beginning::Incomplete,
                has_content: false,
            }),
            segments: 0,
            client: None,
            random: None,
        }
    }

    /// The end that is the client, as far as its content shows.
    pub(crate) fn client(&self) -> Option<End> {
        self.client
    }

    /// The number of bytes of memory in use.
    pub(crate) fn held(&self) -> usize {
        let streams = self.streams.iter().map(|stream| stream.assembly.held());
        size_of::<Self>() + streams.sum::<usize>()
    }

    /// Notes content of an end.
    pub(crate) fn on_segment(
        &mut self,
        content: &Content<'_>,
        keys: &KeyLog,
        labels: &mut Labels,
    ) -> Progress {
        let stream = &mut self.streams[content.sender];
        stream.has_content = true;
        let first = *stream.first.get_or_insert(content.sequence);
        // Nothing more is needed of an end whose first bytes say all; an upload may precede its response.
        if !matches!(stream.beginning, Beginning::Incomplete | Beginning::Tls) {
            return Progress::Continues;
        }
        self.segments += 1;
        if self.segments > MAX_SEGMENTS {
            return Progress::Done;
        }
        // What was sent before the first segment that is known has an offset that is far beyond the limit.
        let offset = content.sequence.wrapping_sub(first) as usize;
        let known = stream.assembly.whole().len();
        if !stream.assembly.insert(offset, content.payload) {
            return Progress::Continues;
        }
        let whole = stream.assembly.whole();
        // A long line is not looked at again from its beginning with each piece.
        let may_end = || known < cleartext::LONG || whole[known..].iter().any(|byte| *byte < b' ');
        if stream.beginning == Beginning::Incomplete && may_end() {
            stream.beginning = Beginning::of(whole);
        }
        if !matches!(stream.beginning, Beginning::Incomplete | Beginning::Tls) {
            stream.assembly.clear();
        }
        let full = stream.assembly.is_full();
        match self.advance(content, keys, labels) {
            Progress::Continues if full => Progress::Done,
            progress => progress,
        }
    }

    /// Inspects the content of both ends. Content of one end alone is not used as a label, unless only that end is captured.
    fn advance(&mut self, content: &Content<'_>, keys: &KeyLog, labels: &mut Labels) -> Progress {
        use Beginning::{Incomplete, Preface, Request, Response, Settings, Ssh, Tls, Unknown};
        let [a, b] = [0, 1].map(|end: End| self.streams[end].beginning);
        if a == Tls || b == Tls {
            return self.tls(content.is_seen, keys, labels);
        }
        for (end, beginning, theirs) in [(0, a, b), (1, b, a)] {
            match beginning {
                Request | Preface => self.client = Some(end),
                Response => {
                    self.client = Some(other(end));
                    let client = &self.streams[other(end)];
                    let has_sent = match content.is_seen[other(end)] {
                        true => client.has_content,
                        false => content.may_answer(),
                    };
                    let is_request = match theirs {
                        Request => true,
                        Incomplete if cleartext::may_be_request(client.assembly.whole()) => true,
                        // The request was before the capture, which has content behind it.
                        Incomplete | Unknown => {
                            end == content.sender && client.began_before(content)
                        }
                        _ => false,
                    };
                    if has_sent && is_request {
                        labels.show(HttpVersion::H1);
                        return Progress::Done;
                    }
                }
                Settings if theirs == Preface => {
                    labels.show(HttpVersion::H2);
                    return Progress::Done;
                }
                Ssh if theirs == Ssh => {
                    labels.show(HttpVersion::Other);
                    return Progress::Done;
                }
                _ => {}
            }
        }
        match a == Incomplete || b == Incomplete {
            true => Progress::Continues,
            false => Progress::Done,
        }
    }

    fn tls(&mut self, is_seen: [bool; 2], keys: &KeyLog, labels: &mut Labels) -> Progress {
        let is_tls =
            |stream: &Stream| matches!(stream.beginning, Beginning::Tls | Beginning::Incomplete);
        if !self.streams.iter().all(is_tls) {
            return Progress::Done;
        }
        let plain = self
            .streams
            .each_ref()
            .map(|stream| Plain::of(stream.assembly.whole()));
        for (end, plain) in plain.iter().enumerate() {
            match messages::next(&mut Reader::new(&plain.messages)) {
                Ok(Message::ClientHello(hello)) if self.random.is_none() => {
                    self.client = Some(end);
                    self.random = Some(hello.random);
                    labels.on_hello(&hello);
                }
                // The ClientHello may follow, or pass elsewhere.
                Ok(Message::ServerHello(_)) => self.client = Some(other(end)),
                _ => {}
            }
        }
        let Some(client) = self.client else {
            return Progress::while_any(plain.iter().any(|plain| plain.continues));
        };
        let [ours, theirs] = [&plain[client], &plain[other(client)]];
        let hello = match messages::find_server_hello(&theirs.messages) {
            Ok(hello) => hello,
            Err(error) => {
                let may_come = error == NoMessage::Incomplete && theirs.continues;
                return Progress::while_any(may_come);
            }
        };
        if hello.is_tls13 {
            return match self.random {
                Some(random) => match keys.handshake(&random) {
                    Some(secrets) => tls13(hello.cipher, secrets, [ours, theirs], labels),
                    None => Progress::Done,
                },
                None => Progress::while_any(is_seen[client] && ours.messages.is_empty()),
            };
        }
        let Some(protocol) = hello.protocol else {
            return Progress::Done;
        };
        labels.choose(protocol);
        // In a full handshake the server sends Finished last; otherwise it sends no content before the client's Finished.
        let is_last = |message: &Message<'_>| matches!(message, Message::ServerHelloDone);
        let server_knows =
            || messages::any(theirs.before_change(), is_last) || theirs.encrypted.is_some();
        let is_complete = match is_seen[client] {
            true => ours.is_finished(),
            false => server_knows(),
        };
        if theirs.is_finished() && is_complete {
            labels.confirm(LabelSource::Handshake);
            return Progress::Done;
        }
        Progress::while_any(
            [ours, theirs]
                .iter()
                .all(|plain| plain.continues || plain.is_finished()),
        )
    }
}

/// Decrypts the handshake that follows the hellos: the server's choice, and the client's Finished, with which it has
/// verified the server's.
fn tls13(
    cipher: u16,
    secrets: HandshakeSecrets<'_>,
    [ours, theirs]: [&Plain<'_>; 2],
    labels: &mut Labels,
) -> Progress {
    let open = |plain: &Plain<'_>, secret: &[u8]| match plain.encrypted {
        Some(stream) => Some(records::open(stream, RecordKey::new(cipher, secret)?)),
        None => Some(Opened {
            messages: Vec::new(),
            continues: plain.continues,
        }),
    };
    let (Some(ours), Some(theirs)) = (open(ours, secrets.client), open(theirs, secrets.server))
    else {
        return Progress::Done;
    };
    match messages::next(&mut Reader::new(&theirs.messages)) {
        Ok(Message::EncryptedExtensions(Some(protocol))) => labels.choose(protocol),
        Err(NoMessage::Incomplete) => return Progress::while_any(theirs.continues),
        _ => return Progress::Done,
    }
    let is_finished = |message: &Message<'_>| matches!(message, Message::Finished);
    if messages::any(&ours.messages, is_finished) {
        labels.confirm(LabelSource::KeyLog);
        return Progress::Done;
    }
    Progress::while_any(ours.continues)
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

    /// Notes the version that the packets of both ends show.
    pub(super) fn show(&mut self, version: HttpVersion) {
        let source = LabelSource::Handshake;
        self.label = Some(Label { version, source });
    }
}
