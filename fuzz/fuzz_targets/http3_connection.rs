//! Two ends of an HTTP/3 connection without I/O. One of them also gets arbitrary bytes, on any stream and cut anywhere,
//! resets and ends. Checks for panics, bounded memory, rules about the order of events, and content that is lost.
#![no_main]

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use libfuzzer_sys::fuzz_target;
use marline_h3::{
    Config, Connection, Dir, LocalStream, Priority, Side, StreamEvent, StreamId, Transmit, frame,
    limits,
};
use marline_proto::testing::fuzz::{Script, Step};

/// More events than a short input can cause.
const MAX_EVENTS: usize = 1 << 16;

fuzz_target!(|input: &[u8]| {
    let Some((&first, script)) = input.split_first() else {
        return;
    };
    let attacked = match first & 1 {
        0 => Side::Server,
        _ => Side::Client,
    };
    let mut world = World::new(attacked, first);
    world.play(script);
});

struct World {
    /// The end that gets arbitrary bytes, as if from its peer.
    attacked: Connection,
    /// A correct peer, which sends what the connection needs, and some messages.
    honest: Connection,
    requests: BTreeMap<StreamId, Progress>,
    /// Whether each stream to the attacked end has ended.
    ended: BTreeMap<StreamId, bool>,
    is_closed: bool,
}

/// The events reported for a request.
#[derive(Default)]
struct Progress {
    header: bool,
    trailers: bool,
    end: bool,
}

impl World {
    fn new(side: Side, options: u8) -> Self {
        let config = Config {
            max_field_section_size: 1024,
            qpack_encoder_blocked_streams: u64::from(options >> 1 & 1) * 4,
            enable_connect_protocol: options & 4 != 0,
            h3_datagram: options & 8 != 0,
            grease: (options & 16 != 0).then_some(options.into()),
            ..Config::default()
        };
        let mut world = Self {
            attacked: Connection::new(side, &config),
            honest: Connection::new(side.peer(), &config),
            requests: BTreeMap::new(),
            ended: BTreeMap::new(),
            is_closed: false,
        };
        if options & 32 == 0 {
            world.exchange();
        }
        world
    }

    /// Executes the steps of an input: each is for one stream.
    fn play(&mut self, script: &[u8]) {
        for step in Script::new(script) {
            let Step {
                action,
                number: stream,
                len,
                bytes,
            } = step;
            if self.is_closed {
                return;
            }
            let index = u64::from(stream >> 1 & 0x0f);
            let request = StreamId::new(Side::Client, Dir::Bi, index);
            let id = match stream & 1 {
                0 => request,
                _ => StreamId::new(self.honest.side(), Dir::Uni, index),
            };
            match action % 12 {
                0 | 1 => self.give(id, bytes, false),
                // One chunk per byte.
                2 => bytes.chunks(1).for_each(|byte| self.give(id, byte, false)),
                3 => self.give(id, &framed(0x00, bytes), false),
                4 => self.give(id, &framed(0x01, bytes), false),
                5 => match bytes.split_first() {
                    Some((kind, bytes)) => self.give(id, &framed(kind & 0x3f, bytes), false),
                    None => self.give(id, &[], false),
                },
                6 => self.give(id, &[], true),
                7 => self.reset(id, u64::from(len)),
                8 => self.message(request, bytes),
                9 => self.exchange(),
                10 => match len & 3 {
                    0 => self.attacked.go_away(),
                    1 => self.forget(id),
                    2 => self.attacked.stop_receiving(request),
                    _ => self.attacked.on_request_stream(request),
                },
                _ => {
                    self.honest.update_priority(request, Priority::parse(bytes));
                    if self.attacked.on_stop_sending(id).is_err() {
                        assert_eq!(id.dir(), Dir::Uni);
                    }
                }
            }
            self.observe();
        }
    }

    /// Gives bytes to the attacked end.
    fn give(&mut self, id: StreamId, bytes: &[u8], fin: bool) {
        if self.is_closed || *self.ended.entry(id).or_default() {
            return;
        }
        self.ended.insert(id, fin);
        // A client has the streams that it opened.
        if id.dir() == Dir::Bi && self.attacked.side() == Side::Client {
            self.open(id);
        }
        let bytes = Bytes::copy_from_slice(bytes);
        self.is_closed = self.attacked.on_stream_data(id, bytes, fin).is_err();
    }

    /// The attacked client sends a request.
    fn open(&mut self, id: StreamId) {
        if self.requests.contains_key(&id) {
            return;
        }
        let request = Request::get("https://a/").body(()).expect("a request");
        if self.attacked.encode_request(id, &request).is_ok() {
            self.requests.insert(id, Progress::default());
        }
    }

    fn reset(&mut self, id: StreamId, code: u64) {
        if !self.ended.insert(id, true).unwrap_or_default() {
            self.is_closed |= self.attacked.on_reset(id, code).is_err();
        }
    }

    /// The attacked end no longer needs the stream; nothing else on it is given to it.
    fn forget(&mut self, id: StreamId) {
        self.attacked.forget(id);
        self.requests.remove(&id);
        if id.dir() == Dir::Bi {
            self.ended.insert(id, true);
        }
    }

    /// The honest end sends a header that uses the dynamic table, and content.
    fn message(&mut self, id: StreamId, bytes: &[u8]) {
        let mut headers = HeaderMap::new();
        let name = format!("x-{}", bytes.first().copied().unwrap_or_default());
        if let (Ok(name), Ok(value)) = (
            http::HeaderName::try_from(name),
            http::HeaderValue::from_bytes(bytes),
        ) {
            headers.insert(name, value);
        }
        let encoded = match self.honest.side() {
            Side::Client => {
                let mut request = Request::post("https://a/").body(()).expect("a request");
                *request.headers_mut() = headers;
                self.honest.encode_request(id, &request)
            }
            Side::Server => {
                let mut response = Response::new(());
                *response.headers_mut() = headers;
                self.honest.encode_response(id, &response)
            }
        };
        if let Ok(header) = encoded {
            self.give(id, &header, false);
            self.give(id, &frame::data_header(bytes.len() as u64), false);
            self.give(id, bytes, false);
        }
    }

    /// Delivers what both ends send on their own streams. After other bytes on these streams, the honest end may get a
    /// wrong answer, which is not a finding.
    fn exchange(&mut self) {
        while let Some(Transmit { stream, bytes }) = self.honest.poll_transmit() {
            let id = own(self.honest.side(), stream);
            self.give(id, &bytes, false);
        }
        while let Some(Transmit { stream, bytes }) = self.attacked.poll_transmit() {
            let id = own(self.attacked.side(), stream);
            if self.honest.on_stream_data(id, bytes, false).is_err() {
                self.is_closed = true;
                return;
            }
        }
    }

    /// Takes all events, and checks their order.
    fn observe(&mut self) {
        let mut events = 0;
        while self.attacked.poll_event().is_some() {
            events += 1;
            assert!(events < MAX_EVENTS);
        }
        for index in 0..16 {
            let id = StreamId::new(Side::Client, Dir::Bi, index);
            let side = self.attacked.side();
            let mut interim = 0;
            while let Some(event) = self.attacked.poll_stream(id) {
                let progress = self.requests.entry(id).or_default();
                assert!(!progress.end, "{event:?} after the end");
                match event {
                    StreamEvent::Request(_) => {
                        assert!(side == Side::Server && !progress.header);
                        progress.header = true;
                    }
                    StreamEvent::Response(_) => {
                        assert!(side == Side::Client && !progress.header);
                        progress.header = true;
                    }
                    StreamEvent::Interim(_) => {
                        interim += 1;
                        assert!(side == Side::Client && !progress.header);
                        assert!(interim <= limits::MAX_INTERIM_RESPONSES);
                    }
                    StreamEvent::Data(data) => {
                        assert!(progress.header && !progress.trailers && !data.is_empty());
                    }
                    StreamEvent::Trailers(_) => {
                        assert!(progress.header && !progress.trailers);
                        progress.trailers = true;
                    }
                    StreamEvent::Finished => {
                        assert!(progress.header);
                        progress.end = true;
                    }
                    _ => progress.end = true,
                }
            }
        }
    }
}

fn own(side: Side, stream: LocalStream) -> StreamId {
    StreamId::new(side, Dir::Uni, stream as u64)
}

fn framed(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).expect("a step is short") | 0x4000;
    [&[kind], &length.to_be_bytes()[..], payload].concat()
}
