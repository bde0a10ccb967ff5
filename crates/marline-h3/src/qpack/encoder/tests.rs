use super::*;
use crate::qpack::error::Problem;
use crate::qpack::limits::OUTSTANDING_SECTIONS;
use crate::qpack::tests::hex;

const UNLIMITED: EncoderLimits = EncoderLimits {
    table_capacity: u64::MAX,
    blocked_streams: u64::MAX,
};

/// An encoder whose peer allows a table of `capacity` bytes, and its first instructions are taken.
fn encoder(capacity: u64, blocked_streams: u64) -> Encoder {
    let mut encoder = Encoder::new(UNLIMITED);
    encoder.on_peer_settings(capacity, blocked_streams);
    encoder.take_instructions();
    encoder
}

fn field<'a>(name: &'a str, value: &'a str) -> FieldRef<'a> {
    FieldRef {
        name: name.as_bytes(),
        value: value.as_bytes(),
        is_sensitive: false,
    }
}

fn encode(encoder: &mut Encoder, stream_id: u64, fields: &[FieldRef<'_>]) -> Vec<u8> {
    let mut section = Vec::new();
    encoder.encode(stream_id, fields.iter().copied(), &mut section);
    section
}

/// A field that is inserted at once, and whose name the static table has. With a value of 4 bytes, its entry has 40.
fn vary(value: &str) -> FieldRef<'_> {
    field("vary", value)
}

fn has_references(section: &[u8]) -> bool {
    section[0] != 0
}

fn problem(encoder: &mut Encoder, bytes: &[u8]) -> Problem {
    match encoder.on_decoder_stream(bytes) {
        Err(error @ Error::DecoderStream(problem)) => {
            assert_eq!(error.code(), 0x202);
            problem
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_capacity_is_the_smaller_of_both_limits() {
    // RFC 9204, appendix B.2.
    let mut encoder = Encoder::new(UNLIMITED);
    encoder.on_peer_settings(220, 0);
    assert_eq!(encoder.take_instructions().unwrap(), hex("3fbd01"));
    let mut encoder = Encoder::new(EncoderLimits {
        table_capacity: 220,
        ..UNLIMITED
    });
    encoder.on_peer_settings(4096, 0);
    assert_eq!(encoder.take_instructions().unwrap(), hex("3fbd01"));
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn a_capacity_once_set_stays() {
    let mut encoder = encoder(220, 0);
    encoder.on_peer_settings(4096, 0);
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn the_encoder_stream_is_silent_without_a_table() {
    for capacity in [0, 31] {
        let mut encoder = Encoder::new(UNLIMITED);
        encode(&mut encoder, 0, &[vary("aaaa")]);
        encoder.on_peer_settings(capacity, 10);
        let section = encode(&mut encoder, 4, &[vary("aaaa")]);
        assert!(!has_references(&section));
        assert_eq!(encoder.take_instructions(), None);
    }
}

#[test]
fn lines_of_the_static_table_take_an_index() {
    let mut encoder = encoder(0, 0);
    let fields = [
        field(":method", "GET"),
        field(":path", "/"),
        field(":status", "500"),
    ];
    assert_eq!(encode(&mut encoder, 0, &fields), hex("0000 d1 c1 ff08"));
}

#[test]
fn a_literal_refers_to_a_static_name() {
    let mut encoder = encoder(0, 0);
    // RFC 9204, appendix B.1, but with the value Huffman-coded.
    assert_eq!(
        encode(&mut encoder, 0, &[field(":path", "/index.html")]),
        hex("0000 51 88 60d5485f2bce9a68")
    );
}

#[test]
fn a_string_that_huffman_coding_does_not_shorten_is_plain() {
    let mut encoder = encoder(0, 0);
    assert_eq!(
        encode(&mut encoder, 0, &[field("~", "\\\\")]),
        hex("0000 21 7e 02 5c5c")
    );
}

#[test]
fn references_before_and_after_the_base_follow_appendix_b() {
    let mut out = Vec::new();
    wire::prefix(2, 0, 220 / 32, &mut out);
    wire::dynamic_line(0, 0, &mut out);
    wire::dynamic_line(1, 0, &mut out);
    assert_eq!(out, hex("0381 10 11"));
    out.clear();
    wire::prefix(4, 4, 220 / 32, &mut out);
    wire::dynamic_line(3, 4, &mut out);
    wire::static_line(1, &mut out);
    wire::dynamic_line(2, 4, &mut out);
    assert_eq!(out, hex("0500 80 c1 81"));
    out.clear();
    wire::duplicate(0, 3, &mut out);
    assert_eq!(out, hex("02"));
}

#[test]
fn sensitive_lines_are_never_indexed_in_any_form() {
    let mut encoder = encoder(4096, 10);
    encode(
        &mut encoder,
        0,
        &[vary("aaaa"), field("x-a", "1"), field("x-a", "2")],
    );
    encoder.take_instructions();
    let sensitive = |name, value| FieldRef {
        is_sensitive: true,
        ..field(name, value)
    };
    // Even a line that the static table has; then a static, a dynamic and a literal name.
    for (line, first) in [
        (sensitive(":method", "GET"), 0x70),
        (sensitive("vary", "aaaa"), 0x70),
        (sensitive("x-a", "1"), 0x60),
        (sensitive("x-b", "1"), 0x30),
    ] {
        let section = encode(&mut encoder, 0, &[line]);
        assert_eq!(section[2] & 0xf0, first, "{line:?}: {section:02x?}");
        assert_eq!(encoder.take_instructions(), None);
    }
}

#[test]
fn an_entry_is_referenced_at_once_if_the_stream_may_be_blocked() {
    let mut encoder = encoder(4096, 1);
    let section = encode(&mut encoder, 0, &[vary("aaaa")]);
    assert_eq!(section, hex("0280 10"));
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn an_entry_is_referenced_once_it_is_acknowledged_if_no_stream_may_be_blocked() {
    let mut encoder = encoder(4096, 0);
    let section = encode(&mut encoder, 0, &[vary("aaaa")]);
    assert!(!has_references(&section));
    assert!(encoder.take_instructions().is_some());
    let section = encode(&mut encoder, 4, &[vary("aaaa")]);
    assert!(!has_references(&section));
    assert_eq!(encoder.take_instructions(), None, "it is in the table");
    encoder.on_decoder_stream(&[0x01]).unwrap();
    assert_eq!(encode(&mut encoder, 8, &[vary("aaaa")]), hex("0200 80"));
}

#[test]
fn no_more_streams_are_put_at_risk_than_the_peer_allows() {
    let mut encoder = encoder(4096, 2);
    assert!(has_references(&encode(&mut encoder, 0, &[vary("aaaa")])));
    assert!(has_references(&encode(&mut encoder, 4, &[vary("aaaa")])));
    assert!(!has_references(&encode(&mut encoder, 8, &[vary("aaaa")])));
    // A stream at risk may be put at more of it.
    assert!(has_references(&encode(&mut encoder, 4, &[vary("bbbb")])));
    // Stream 4 still needs the second entry; stream 0 is no longer at risk.
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert!(has_references(&encode(&mut encoder, 8, &[vary("bbbb")])));
    assert!(!has_references(&encode(&mut encoder, 12, &[vary("bbbb")])));
    // Cancelling a stream makes room for another.
    encoder.on_decoder_stream(&[0x40 | 4]).unwrap();
    assert!(has_references(&encode(&mut encoder, 12, &[vary("bbbb")])));
}

#[test]
fn our_own_limit_of_blocked_streams_holds_too() {
    let mut encoder = Encoder::new(EncoderLimits {
        blocked_streams: 0,
        ..UNLIMITED
    });
    encoder.on_peer_settings(4096, 100);
    assert!(!has_references(&encode(&mut encoder, 0, &[vary("aaaa")])));
}

#[test]
fn other_lines_are_inserted_when_they_are_repeated() {
    let mut encoder = encoder(4096, 10);
    assert!(!has_references(&encode(
        &mut encoder,
        0,
        &[field(":path", "/a")]
    )));
    assert_eq!(encoder.take_instructions(), None);
    assert!(has_references(&encode(
        &mut encoder,
        4,
        &[field(":path", "/a")]
    )));
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn a_repeated_name_that_no_table_has_is_inserted_once() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &[field("x-request", "1")]);
    assert_eq!(encoder.take_instructions(), None);
    encode(&mut encoder, 4, &[field("x-request", "2")]);
    assert!(encoder.take_instructions().is_some());
    let section = encode(&mut encoder, 8, &[field("x-request", "3")]);
    // A literal with the name of entry 0.
    assert_eq!(section, hex("0200 40 01 33"));
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn secrets_are_not_inserted_however_often_they_are_sent() {
    let mut encoder = encoder(4096, 10);
    for stream_id in 0..5 {
        let section = encode(
            &mut encoder,
            stream_id,
            &[field("authorization", "Basic abc"), field("cookie", "a=1")],
        );
        assert!(!has_references(&section));
    }
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn an_entry_takes_half_of_the_table_at_most() {
    let mut encoder = encoder(200, 10);
    encode(&mut encoder, 0, &[vary(&"a".repeat(65))]);
    assert_eq!(encoder.take_instructions(), None);
    encode(&mut encoder, 0, &[vary(&"a".repeat(64))]);
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn entries_with_outstanding_references_are_not_evicted() {
    // Room for two entries.
    let mut encoder = encoder(80, 10);
    encode(&mut encoder, 0, &[vary("aaaa")]);
    encode(&mut encoder, 4, &[vary("bbbb")]);
    encoder.take_instructions();
    // Both are received, neither section is processed.
    encoder.on_decoder_stream(&[0x02]).unwrap();
    assert!(!has_references(&encode(&mut encoder, 8, &[vary("cccc")])));
    assert_eq!(encoder.take_instructions(), None);
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert!(has_references(&encode(&mut encoder, 8, &[vary("cccc")])));
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn entries_that_are_not_acknowledged_are_not_evicted() {
    let mut encoder = encoder(80, 0);
    encode(&mut encoder, 0, &[vary("aaaa"), vary("bbbb")]);
    encoder.take_instructions();
    encode(&mut encoder, 4, &[vary("cccc")]);
    assert_eq!(encoder.take_instructions(), None);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    encode(&mut encoder, 4, &[vary("cccc")]);
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn a_section_does_not_evict_what_it_refers_to() {
    let mut encoder = encoder(80, 10);
    encode(&mut encoder, 0, &[vary("aaaa"), vary("bbbb")]);
    encoder.on_decoder_stream(&[0x80]).unwrap();
    encoder.take_instructions();
    // The second entry is the newest, and not draining.
    let section = encode(&mut encoder, 4, &[vary("bbbb"), vary("cccc"), vary("dddd")]);
    assert!(has_references(&section));
    assert_eq!(encoder.table.insert_count(), 3);
    assert!(encoder.table.get(1).is_some());
}

#[test]
fn a_cancelled_stream_releases_its_references() {
    let mut encoder = encoder(80, 10);
    encode(&mut encoder, 0, &[vary("aaaa"), vary("bbbb")]);
    encoder.on_decoder_stream(&[0x02]).unwrap();
    encoder.take_instructions();
    encode(&mut encoder, 4, &[vary("cccc")]);
    assert_eq!(encoder.take_instructions(), None);
    encoder.on_decoder_stream(&[0x40]).unwrap();
    encode(&mut encoder, 4, &[vary("cccc")]);
    assert!(encoder.take_instructions().is_some());
}

#[test]
fn a_cancelled_stream_does_not_acknowledge_insertions() {
    let mut encoder = encoder(80, 10);
    encode(&mut encoder, 0, &[vary("aaaa"), vary("bbbb")]);
    encoder.take_instructions();
    encoder.on_decoder_stream(&[0x40]).unwrap();
    encode(&mut encoder, 4, &[vary("cccc")]);
    assert_eq!(encoder.take_instructions(), None);
}

#[test]
fn a_draining_entry_is_duplicated() {
    // Room for four entries, of which one drains when the table is full.
    let mut encoder = encoder(160, 10);
    encode(
        &mut encoder,
        0,
        &[vary("aaaa"), vary("bbbb"), vary("cccc"), vary("dddd")],
    );
    encoder.on_decoder_stream(&[0x80]).unwrap();
    encoder.take_instructions();
    let section = encode(&mut encoder, 4, &[vary("aaaa")]);
    // Duplicate, relative index 3; a reference to the duplicate, entry 4.
    assert_eq!(encoder.take_instructions().unwrap(), hex("03"));
    assert_eq!(section, hex("0680 10"));
}

#[test]
fn the_name_of_a_draining_entry_is_not_referenced() {
    let mut encoder = encoder(160, 10);
    let name = "via";
    encode(
        &mut encoder,
        0,
        &[field(name, "aaaaa"), vary("bbbb"), vary("cccc")],
    );
    encoder.on_decoder_stream(&[0x80]).unwrap();
    // A value that is too large to be inserted.
    let large = "x".repeat(80);
    assert!(has_references(&encode(
        &mut encoder,
        4,
        &[field(name, &large)]
    )));
    encoder.on_decoder_stream(&[0x84]).unwrap();
    encode(&mut encoder, 8, &[vary("dddd")]);
    encoder.on_decoder_stream(&[0x88]).unwrap();
    assert!(!has_references(&encode(
        &mut encoder,
        12,
        &[field(name, &large)]
    )));
}

#[test]
fn an_insertion_refers_to_a_name_of_the_dynamic_table() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &[field("via", "~"), vary("~~~~")]);
    encoder.take_instructions();
    encode(&mut encoder, 4, &[field("via", "\\")]);
    // RFC 9204, section 4.3.2: T = 0, relative index 1.
    assert_eq!(encoder.take_instructions().unwrap(), hex("81 01 5c"));
}

#[test]
fn an_acknowledgment_of_an_older_section_takes_nothing_back() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &[vary("aaaa")]);
    encode(&mut encoder, 4, &[vary("bbbb")]);
    encoder.on_decoder_stream(&[0x84, 0x80]).unwrap();
    assert_eq!(encoder.outstanding.known_received(), 2);
}

#[test]
fn a_peer_that_acknowledges_no_section_gets_no_more_references() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &[vary("aaaa")]);
    encoder.on_decoder_stream(&[0x01]).unwrap();
    for stream_id in 1..OUTSTANDING_SECTIONS as u64 {
        assert!(has_references(&encode(
            &mut encoder,
            stream_id,
            &[vary("aaaa")]
        )));
    }
    assert!(!has_references(&encode(&mut encoder, 0, &[vary("aaaa")])));
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert!(has_references(&encode(&mut encoder, 0, &[vary("aaaa")])));
}

#[test]
fn an_increment_of_zero_is_refused() {
    assert_eq!(
        problem(&mut encoder(4096, 0), &[0x00]),
        Problem::InsertCountIncrement(0)
    );
}

#[test]
fn an_increment_beyond_what_was_inserted_is_refused() {
    let mut encoder = encoder(4096, 0);
    encode(&mut encoder, 0, &[vary("aaaa")]);
    assert_eq!(
        problem(&mut encoder, &[0x02]),
        Problem::InsertCountIncrement(2)
    );
    encoder.on_decoder_stream(&[0x01]).unwrap();
    assert_eq!(
        problem(&mut encoder, &[0x01]),
        Problem::InsertCountIncrement(1)
    );
}

#[test]
fn an_acknowledgment_that_no_section_awaits_is_refused() {
    let mut encoder = encoder(4096, 10);
    encode(&mut encoder, 0, &[vary("aaaa")]);
    encode(&mut encoder, 4, &[field(":method", "GET")]);
    assert_eq!(
        problem(&mut encoder, &[0x84]),
        Problem::SectionAcknowledgment(4)
    );
    encoder.on_decoder_stream(&[0x80]).unwrap();
    assert_eq!(
        problem(&mut encoder, &[0x80]),
        Problem::SectionAcknowledgment(0)
    );
}

#[test]
fn a_padded_integer_is_refused() {
    let mut bytes = vec![0xff];
    bytes.extend([0x80; 9]);
    assert_eq!(
        problem(&mut encoder(4096, 0), &bytes),
        Problem::IntegerTooLarge
    );
}

#[test]
fn an_instruction_may_arrive_byte_by_byte() {
    let mut encoder = encoder(4096, 10);
    let stream_id = 1 << 40;
    encode(&mut encoder, stream_id, &[vary("aaaa")]);
    let mut bytes = Vec::new();
    crate::qpack::integer::encode(stream_id, 7, 0x80, &mut bytes);
    for byte in &bytes {
        assert_eq!(encoder.outstanding.known_received(), 0);
        encoder.on_decoder_stream(&[*byte]).unwrap();
    }
    assert_eq!(encoder.outstanding.known_received(), 1);
    assert!(encoder.unfinished.is_empty());
}
