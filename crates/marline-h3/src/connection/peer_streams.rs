//! The peer's unidirectional streams (RFC 9114, section 6.2).

use bytes::{Buf, Bytes};
use marline_wire::{Reader, Side, StreamId};
use rustc_hash::FxHashMap;

use super::control::{ControlFrame, ControlStream};
use crate::error::{Error, ErrorCode};
use crate::limits;

/// Bytes of the largest stream type.
const MAX_TYPE: usize = 8;

/// The types of streams.
const CONTROL: u64 = 0x00;
const PUSH: u64 = 0x01;
const QPACK_ENCODER: u64 = 0x02;
const QPACK_DECODER: u64 = 0x03;

/// A stream of the peer, by its type.
#[derive(Debug)]
pub(super) enum PeerStream {
    /// The type has not arrived completely.
    Undecided {
        held: [u8; MAX_TYPE],
        len: usize,
    },
    Control(Box<ControlStream>),
    QpackEncoder,
    QpackDecoder,
    /// Of a type that is not known: what arrives is dropped.
    Ignored {
        is_reported: bool,
    },
}

impl PeerStream {
    /// Whether the connection cannot go on without it.
    pub(super) fn is_critical(&self) -> bool {
        matches!(
            self,
            Self::Control(_) | Self::QpackEncoder | Self::QpackDecoder
        )
    }
}

/// All that are open.
#[derive(Debug)]
pub(super) struct PeerStreams {
    /// The side of this end.
    side: Side,
    open: FxHashMap<StreamId, PeerStream>,
    /// Whether the critical streams exist: control, encoder, decoder.
    critical: [bool; 3],
}

impl PeerStreams {
    pub(super) fn new(side: Side) -> Self {
        Self {
            side,
            open: FxHashMap::default(),
            critical: [false; 3],
        }
    }

    /// The stream to which `input` belongs, whose type is taken from its front.
    pub(super) fn receive(
        &mut self,
        id: StreamId,
        input: &mut Bytes,
    ) -> Result<&mut PeerStream, Error> {
        if !self.open.contains_key(&id) && self.open.len() >= limits::MAX_UNI_STREAMS {
            return Err(Error::new(
                ErrorCode::EXCESSIVE_LOAD,
                "too many unidirectional streams",
            ));
        }
        let stream = self.open.entry(id).or_insert(PeerStream::Undecided {
            held: [0; MAX_TYPE],
            len: 0,
        });
        if let PeerStream::Undecided { held, len } = stream
            && let Some(kind) = read_type(held, len, input)
        {
            *stream = decide(self.side, kind, &mut self.critical)?;
        }
        Ok(stream)
    }

    /// The next frame of a control stream.
    pub(super) fn next_control_frame(
        &mut self,
        id: StreamId,
        input: &mut Bytes,
    ) -> Result<Option<ControlFrame>, Error> {
        match self.open.get_mut(&id) {
            Some(PeerStream::Control(control)) => control.next(input),
            _ => Ok(None),
        }
    }

    /// The stream has ended, or was reset.
    pub(super) fn on_end(&mut self, id: StreamId) -> Result<(), Error> {
        match self.open.remove(&id) {
            Some(stream) if stream.is_critical() => Err(Error::new(
                ErrorCode::CLOSED_CRITICAL_STREAM,
                "a control or QPACK stream was closed",
            )),
            _ => Ok(()),
        }
    }

    /// The caller no longer reads the stream.
    pub(super) fn forget(&mut self, id: StreamId) {
        if self.open.get(&id).is_some_and(|open| !open.is_critical()) {
            self.open.remove(&id);
        }
    }
}

fn read_type(held: &mut [u8; MAX_TYPE], len: &mut usize, input: &mut Bytes) -> Option<u64> {
    while input.has_remaining() {
        held[*len] = input.get_u8();
        *len += 1;
        if let Ok(kind) = Reader::new(&held[..*len]).varint() {
            return Some(kind);
        }
    }
    None
}

fn decide(side: Side, kind: u64, critical: &mut [bool; 3]) -> Result<PeerStream, Error> {
    let creation = |reason| Err(Error::new(ErrorCode::STREAM_CREATION_ERROR, reason));
    let (index, stream) = match kind {
        CONTROL => (0, PeerStream::Control(Box::new(ControlStream::new(side)))),
        QPACK_ENCODER => (1, PeerStream::QpackEncoder),
        QPACK_DECODER => (2, PeerStream::QpackDecoder),
        PUSH if side.is_server() => return creation("a push stream from a client"),
        // A client that never sent MAX_PUSH_ID allows no push ID (section 4.6).
        PUSH => {
            return Err(Error::new(
                ErrorCode::ID_ERROR,
                "a push, and none was allowed",
            ));
        }
        _ => return Ok(PeerStream::Ignored { is_reported: false }),
    };
    if std::mem::replace(&mut critical[index], true) {
        return creation("a second control or QPACK stream");
    }
    Ok(stream)
}
