//! The state that a decoder keeps for its peer, and the acknowledgments of what it has received.

use super::*;

/// A section that needs one insertion more than `THREE_ENTRIES`, and refers to it.
const NEEDS_FOURTH: &str = "0500 80";

#[test]
fn the_required_insert_count_of_the_example_in_section_4_5_1_1() {
    // A table of 100 bytes, ten insertions (each evicts the one before): 4 stands for 9, relative index 0 for entry 8.
    let mut decoder = Decoder::new(DecoderLimits {
        table_capacity: 100,
        ..LIMITS
    });
    decoder.on_encoder_stream(&hex("3f45")).unwrap();
    for value in 0..10 {
        decoder
            .on_encoder_stream(&[0xc2, 0x01, b'0' + value])
            .unwrap();
    }
    assert_eq!(decode(&mut decoder, 0, "0400 80"), fields(&[("age", "8")]));
}

#[test]
fn a_section_at_the_size_limit_is_decoded_and_a_larger_one_is_too_large() {
    let size = field("age", "0").size() as u64;
    for (max, is_decoded) in [(2 * size, true), (2 * size - 1, false)] {
        let mut decoder = Decoder::new(DecoderLimits {
            max_field_section_size: max,
            ..LIMITS
        });
        // age: 0, once from the static table, once as a literal in each form.
        for section in ["0000 c2c2", "0000 c2 52 0130", "0000 c2 23616765 0130"] {
            let decoded = decode(&mut decoder, 0, section);
            if is_decoded {
                assert_eq!(decoded, fields(&[("age", "0"), ("age", "0")]));
            } else {
                assert_eq!(decoded, Ok(Decoded::TooLarge), "{section}");
            }
        }
    }
}

#[test]
fn a_section_that_is_too_large_is_acknowledged() {
    let mut decoder = Decoder::new(DecoderLimits {
        max_field_section_size: 100,
        ..LIMITS
    });
    decoder.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
    assert_eq!(
        decode(&mut decoder, 4, "0400 80808080"),
        Ok(Decoded::TooLarge)
    );
    assert_eq!(decoder.take_instructions().unwrap(), hex("84"));
}

#[test]
fn references_to_a_large_entry_share_its_memory_and_stop_at_the_limit() {
    let mut decoder = Decoder::new(DecoderLimits {
        table_capacity: 1 << 14,
        max_field_section_size: 100_000,
        ..LIMITS
    });
    let mut instructions = Vec::new();
    integer::encode(1 << 14, 5, 0x20, &mut instructions);
    instructions.push(0xc2);
    integer::encode(10_000, 7, 0, &mut instructions);
    instructions.extend([b'a'; 10_000]);
    decoder.on_encoder_stream(&instructions).unwrap();
    let section = |count: usize| {
        let mut section = vec![0x02, 0x00];
        section.resize(2 + count, 0x80);
        Bytes::from(section)
    };
    let Ok(Decoded::Fields(lines)) = decoder.decode(0, section(9)) else {
        panic!("nine of them fit");
    };
    let entry = decoder.table.get(0).unwrap();
    assert!(
        lines
            .iter()
            .all(|line| line.value.as_ptr() == entry.value.as_ptr())
    );
    assert_eq!(decoder.decode(4, section(1 << 20)), Ok(Decoded::TooLarge));
}

#[test]
fn a_plain_string_of_a_section_is_not_copied() {
    let section = Bytes::from(hex("0000 5103 2f6162"));
    let mut decoder = Decoder::new(LIMITS);
    let Ok(Decoded::Fields(lines)) = decoder.decode(0, section.clone()) else {
        panic!("decodes");
    };
    assert_eq!(lines[0].value.as_ptr(), section[4..].as_ptr());
}

#[test]
fn one_more_blocked_stream_than_announced_is_an_error() {
    let mut decoder = Decoder::new(DecoderLimits {
        blocked_streams: 2,
        ..LIMITS
    });
    decoder.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
    for stream_id in [0, 4, 4] {
        assert_eq!(
            decode(&mut decoder, stream_id, NEEDS_FOURTH),
            Ok(Decoded::Blocked)
        );
    }
    assert_eq!(
        decode(&mut decoder, 8, NEEDS_FOURTH),
        Err(Error::DecompressionFailed(Problem::TooManyBlockedStreams))
    );
}

#[test]
fn blocked_sections_take_no_more_bytes_than_configured() {
    let mut decoder = Decoder::new(DecoderLimits {
        blocked_bytes: 2 * 65,
        ..LIMITS
    });
    decoder.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
    for stream_id in [0, 4] {
        assert_eq!(
            decode(&mut decoder, stream_id, NEEDS_FOURTH),
            Ok(Decoded::Blocked)
        );
    }
    assert_eq!(
        decode(&mut decoder, 0, NEEDS_FOURTH),
        Err(Error::DecompressionFailed(Problem::TooManyBlockedBytes))
    );
    // Cancelling and unblocking make room.
    decoder.on_stream_cancelled(0);
    assert_eq!(decode(&mut decoder, 8, NEEDS_FOURTH), Ok(Decoded::Blocked));
    decoder.on_encoder_stream(&hex("00")).unwrap();
    assert!(decoder.poll_unblocked().is_some());
    assert!(decoder.poll_unblocked().is_some());
    assert_eq!(decoder.poll_unblocked(), None);
    for stream_id in [12, 16] {
        assert_eq!(
            decode(&mut decoder, stream_id, "0600 80"),
            Ok(Decoded::Blocked)
        );
    }
}

#[test]
fn sections_of_a_blocked_stream_keep_their_order() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert_eq!(decode(&mut decoder, 4, NEEDS_FOURTH), Ok(Decoded::Blocked));
    assert_eq!(decode(&mut decoder, 4, "0000 c1"), Ok(Decoded::Blocked));
    assert_eq!(
        decode(&mut decoder, 8, "0000 c1"),
        fields(&[(":path", "/")])
    );
    assert_eq!(decoder.poll_unblocked(), None);
    decoder.on_encoder_stream(&hex("00")).unwrap();
    let values: Vec<_> = std::iter::from_fn(|| decoder.poll_unblocked()).collect();
    assert_eq!(values.len(), 2);
    assert_eq!(values[0].result, fields(&[("age", "c")]));
    assert_eq!(values[1].result, fields(&[(":path", "/")]));
}

#[test]
fn insertions_are_reported_once() {
    let mut decoder = Decoder::new(LIMITS);
    decoder.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
    // A section acknowledges two of them, the increment the third.
    assert!(decode(&mut decoder, 0, "0300 80").is_ok());
    assert_eq!(decoder.take_instructions().unwrap(), hex("80 01"));
    assert_eq!(decoder.take_instructions(), None);
}

#[test]
fn sections_without_references_are_not_acknowledged() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert!(decode(&mut decoder, 0, "0000 c1").is_ok());
    assert_eq!(decoder.take_instructions(), None);
}

#[test]
fn cancellations_are_not_sent_without_a_table() {
    let mut decoder = Decoder::new(DecoderLimits {
        table_capacity: 0,
        ..LIMITS
    });
    decoder.on_stream_cancelled(4);
    assert_eq!(decoder.take_instructions(), None);
}

#[test]
fn sensitive_lines_are_marked_in_every_form() {
    let mut decoder = decoder(THREE_ENTRIES);
    // Static name, dynamic name before and after the Base, literal name.
    for section in [
        "0000 72 0130",
        "0400 60 0130",
        "0480 08 0130",
        "0000 33616765 0130",
    ] {
        let Ok(Decoded::Fields(lines)) = decode(&mut decoder, 0, section) else {
            panic!("{section}");
        };
        assert_eq!(lines.len(), 1);
        assert_eq!(&lines[0].name[..], b"age");
        assert!(lines[0].is_sensitive);
        assert!(!format!("{lines:?}").contains("age: 0"));
    }
}

#[test]
fn entries_share_no_memory_with_the_stream() {
    let bytes = hex(THREE_ENTRIES);
    let mut decoder = Decoder::new(LIMITS);
    decoder.on_encoder_stream(&bytes).unwrap();
    assert_eq!(decoder.table.get(0).unwrap().value, "a");
    assert!(decoder.unfinished.is_empty());
}
