//! An encoder and the decoder of its peer, joined by streams that are cut, delayed and reordered.

use crate::qpack::{
    Decoded, Decoder, DecoderLimits, Encoder, EncoderLimits, FieldLine, FieldRef, Unblocked,
};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Debug)]
enum Step {
    Send {
        stream_id: u64,
        lines: Vec<FieldLine>,
    },
    /// Delivers this many bytes of the encoder stream.
    EncoderStream(usize),
    /// Delivers this many bytes of the decoder stream.
    DecoderStream(usize),
    /// Delivers the next section of the stream that is at this place among those that wait.
    Section(usize),
    /// The receiver abandons a stream.
    Cancel(u64),
}

/// Data in flight between the two, and data that has arrived.
struct Joined {
    encoder: Encoder,
    decoder: Decoder,
    encoder_stream: VecDeque<u8>,
    decoder_stream: VecDeque<u8>,
    sections: BTreeMap<u64, VecDeque<Bytes>>,
    sent: BTreeMap<u64, Vec<Vec<FieldLine>>>,
    received: BTreeMap<u64, Vec<Vec<FieldLine>>>,
    cancelled: Vec<u64>,
    blocked: BTreeMap<u64, usize>,
    blocked_streams: usize,
}

impl Joined {
    fn new(encoder: EncoderLimits, table_capacity: u64, blocked_streams: u64) -> Self {
        let mut encoder = Encoder::new(encoder);
        encoder.on_peer_settings(table_capacity, blocked_streams);
        Self {
            encoder,
            decoder: Decoder::new(DecoderLimits {
                table_capacity,
                blocked_streams,
                max_field_section_size: u64::MAX,
                blocked_bytes: usize::MAX,
            }),
            encoder_stream: VecDeque::new(),
            decoder_stream: VecDeque::new(),
            sections: BTreeMap::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            cancelled: Vec::new(),
            blocked: BTreeMap::new(),
            blocked_streams: blocked_streams as usize,
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { stream_id, lines } => self.send(stream_id, lines),
            Step::EncoderStream(count) => self.deliver_instructions(count),
            Step::DecoderStream(count) => self.deliver_acknowledgments(count),
            Step::Section(place) => self.deliver_section(place),
            Step::Cancel(stream_id) => self.cancel(stream_id),
        }
    }

    fn send(&mut self, stream_id: u64, lines: Vec<FieldLine>) {
        if self.cancelled.contains(&stream_id) {
            return;
        }
        let mut section = Vec::new();
        self.encoder
            .encode(stream_id, lines.iter().map(FieldRef::from), &mut section);
        self.encoder_stream
            .extend(self.encoder.take_instructions().into_iter().flatten());
        self.sections
            .entry(stream_id)
            .or_default()
            .push_back(section.into());
        self.sent.entry(stream_id).or_default().push(lines);
    }

    fn deliver_instructions(&mut self, count: usize) {
        let count = count.min(self.encoder_stream.len());
        let bytes: Vec<u8> = self.encoder_stream.drain(..count).collect();
        self.decoder.on_encoder_stream(&bytes).unwrap();
        while let Some(Unblocked { stream_id, result }) = self.decoder.poll_unblocked() {
            let count = self.blocked.get_mut(&stream_id).unwrap();
            *count -= 1;
            if *count == 0 {
                self.blocked.remove(&stream_id);
            }
            self.receive(stream_id, result.unwrap());
        }
    }

    fn deliver_acknowledgments(&mut self, count: usize) {
        self.decoder_stream
            .extend(self.decoder.take_instructions().into_iter().flatten());
        let count = count.min(self.decoder_stream.len());
        let bytes: Vec<u8> = self.decoder_stream.drain(..count).collect();
        self.encoder.on_decoder_stream(&bytes).unwrap();
    }

    fn deliver_section(&mut self, place: usize) {
        let waiting: Vec<u64> = self.sections.keys().copied().collect();
        let Some(&stream_id) = waiting.get(place % waiting.len().max(1)) else {
            return;
        };
        let sections = self.sections.get_mut(&stream_id).unwrap();
        let section = sections.pop_front().unwrap();
        if sections.is_empty() {
            self.sections.remove(&stream_id);
        }
        let decoded = self.decoder.decode(stream_id, section).unwrap();
        self.receive(stream_id, decoded);
    }

    fn receive(&mut self, stream_id: u64, decoded: Decoded) {
        match decoded {
            Decoded::Fields(lines) => self.received.entry(stream_id).or_default().push(lines),
            Decoded::Blocked => {
                *self.blocked.entry(stream_id).or_default() += 1;
                assert!(self.blocked.len() <= self.blocked_streams);
            }
            Decoded::TooLarge => panic!("nothing is too large"),
        }
    }

    fn cancel(&mut self, stream_id: u64) {
        if self.cancelled.contains(&stream_id) {
            return;
        }
        self.cancelled.push(stream_id);
        self.sections.remove(&stream_id);
        self.blocked.remove(&stream_id);
        self.decoder.on_stream_cancelled(stream_id);
    }

    /// Delivers everything, and compares.
    fn finish(mut self) {
        while !self.sections.is_empty() {
            self.deliver_section(0);
        }
        self.deliver_instructions(usize::MAX);
        self.deliver_acknowledgments(usize::MAX);
        assert!(self.blocked.is_empty());
        for (stream_id, sent) in &self.sent {
            let received = self.received.remove(stream_id).unwrap_or_default();
            if self.cancelled.contains(stream_id) {
                assert_eq!(&sent[..received.len()], &received[..]);
            } else {
                assert_eq!(sent, &received);
            }
        }
    }
}

/// Lines that repeat often, with a few that do not.
fn line() -> impl Strategy<Value = FieldLine> {
    let name = prop_oneof![
        prop::sample::select(vec![
            ":authority",
            ":path",
            ":status",
            "cookie",
            "date",
            "user-agent",
            "via",
            "x-a",
            "x-b",
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..6),
    ];
    let value = prop_oneof![
        8 => prop::sample::select(vec![
            "", "/", "200", "a", "some value", "a cookie that is long enough to be indexed",
        ])
        .prop_map(|value| value.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
    ];
    (name, value, prop::bool::weighted(0.1)).prop_map(|(name, value, is_sensitive)| FieldLine {
        name: name.into(),
        value: value.into(),
        is_sensitive,
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..12_u64, prop::collection::vec(line(), 0..6))
            .prop_map(|(stream_id, lines)| Step::Send { stream_id: 4 * stream_id, lines }),
        6 => (0..60_usize).prop_map(Step::EncoderStream),
        6 => (0..8_usize).prop_map(Step::DecoderStream),
        8 => any::<usize>().prop_map(Step::Section),
        1 => (0..12_u64).prop_map(|stream_id| Step::Cancel(4 * stream_id)),
    ]
}

fn limits() -> impl Strategy<Value = EncoderLimits> {
    (prop_oneof![Just(0), 32..600_u64, Just(u64::MAX)], 0..4_u64).prop_map(
        |(table_capacity, blocked_streams)| EncoderLimits {
            table_capacity,
            blocked_streams,
        },
    )
}

proptest! {
    #[test]
    fn every_field_list_is_reproduced(
        limits in limits(),
        table_capacity in prop_oneof![Just(0), 1..600_u64, Just(4096)],
        blocked_streams in 0..4_u64,
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut joined = Joined::new(limits, table_capacity, blocked_streams);
        for step in steps {
            joined.step(step);
        }
        joined.finish();
    }

    #[test]
    fn arbitrary_acknowledgments_do_not_stop_an_encoder(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0..8_u8, 0x80..0x88_u8], 0..40),
        lines in prop::collection::vec(line(), 1..40),
    ) {
        let mut joined = Joined::new(
            EncoderLimits { table_capacity: 200, blocked_streams: 3 },
            200,
            3,
        );
        for (place, line) in lines.into_iter().enumerate() {
            joined.send(place as u64 % 8, vec![line]);
            if let Some(byte) = bytes.get(place) {
                let _ = joined.encoder.on_decoder_stream(&[*byte]);
            }
        }
    }
}

/// A request as a browser sends it.
fn request(path: &'static str) -> Vec<FieldLine> {
    [
        (":method", "GET"),
        (":scheme", "https"),
        (":authority", "www.example.com"),
        (":path", path),
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        ),
        (
            "accept",
            "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
        ),
        ("accept-encoding", "gzip, deflate, br"),
        ("accept-language", "en-US,en;q=0.5"),
        (
            "cookie",
            "session=3f2a9c0e77b14d0d9be1c5a2f0347a11; theme=dark",
        ),
    ]
    .into_iter()
    .map(|(name, value)| FieldLine {
        name: Bytes::from_static(name.as_bytes()),
        value: Bytes::from_static(value.as_bytes()),
        is_sensitive: false,
    })
    .collect()
}

#[test]
fn a_second_request_takes_a_byte_for_each_repeated_line() {
    for blocked_streams in [0, 16] {
        let limits = EncoderLimits {
            table_capacity: 4096,
            blocked_streams,
        };
        let mut joined = Joined::new(limits, 4096, blocked_streams);
        for (stream_id, path) in [(0, "/a"), (4, "/b")] {
            joined.send(stream_id, request(path));
            let size = joined.sections[&stream_id][0].len();
            if stream_id == 4 {
                // The prefix, eight lines, and the path with its name's index, length and value.
                assert!(size <= 2 + 8 + 4, "{size} bytes");
            }
            joined.deliver_instructions(usize::MAX);
            joined.deliver_section(0);
            joined.deliver_acknowledgments(usize::MAX);
        }
        joined.finish();
    }
}

#[test]
fn the_required_insert_count_wraps_many_times() {
    let limits = EncoderLimits {
        table_capacity: 200,
        blocked_streams: 1,
    };
    let mut joined = Joined::new(limits, 200, 1);
    for round in 0..500_u64 {
        let lines = vec![FieldLine {
            name: Bytes::from_static(b"via"),
            value: round.to_string().into_bytes().into(),
            is_sensitive: false,
        }];
        joined.send(4 * round, lines);
        // The section arrives before the insertion that it needs.
        joined.deliver_section(0);
        assert_eq!(joined.blocked.len(), 1);
        joined.deliver_instructions(usize::MAX);
        joined.deliver_acknowledgments(usize::MAX);
    }
    joined.finish();
}
