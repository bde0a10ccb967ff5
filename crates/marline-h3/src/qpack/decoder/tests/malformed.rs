//! Errors of a peer, by section of RFC 9204.

use super::*;

/// The problem of a section.
fn in_section(decoder: &mut Decoder, section: &str) -> Problem {
    match decode(decoder, 0, section) {
        Err(error @ Error::DecompressionFailed(problem)) => {
            assert_eq!(error.code(), 0x200);
            problem
        }
        other => panic!("{section}: {other:?}"),
    }
}

/// The problem of instructions.
fn in_instructions(decoder: &mut Decoder, instructions: &str) -> Problem {
    match decoder.on_encoder_stream(&hex(instructions)) {
        Err(error @ Error::EncoderStream(problem)) => {
            assert_eq!(error.code(), 0x201);
            problem
        }
        other => panic!("{instructions}: {other:?}"),
    }
}

#[test]
fn section_2_2_3_references_to_entries_beyond_the_required_insert_count() {
    let mut decoder = decoder(THREE_ENTRIES);
    // Required Insert Count 2, Base 3: indices 2, 1, 0.
    assert!(decode(&mut decoder, 0, "0301 81").is_ok());
    for section in [
        "0301 80",
        "0301 40 0161",
        "0301 83",
        "0300 10",
        "0300 00 0161",
    ] {
        let problem = in_section(&mut decoder, section);
        assert!(
            matches!(problem, Problem::DynamicIndex(_)),
            "{section}: {problem}"
        );
    }
}

#[test]
fn section_2_2_3_references_to_evicted_entries() {
    // A capacity of 80 evicts the first of the three entries.
    let mut decoder = decoder(&format!("{THREE_ENTRIES} 3f31"));
    assert!(decode(&mut decoder, 0, "0400 81").is_ok());
    assert_eq!(
        in_section(&mut decoder, "0400 82"),
        Problem::DynamicIndex(2)
    );
    for instruction in ["02", "82 0161"] {
        let mut decoder = super::decoder(&format!("{THREE_ENTRIES} 3f31"));
        assert_eq!(
            in_instructions(&mut decoder, instruction),
            Problem::DynamicIndex(2)
        );
    }
}

#[test]
fn section_2_2_3_references_without_a_required_insert_count() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert_eq!(
        in_section(&mut decoder, "0003 80"),
        Problem::DynamicIndex(0)
    );
}

#[test]
fn section_3_1_indices_beyond_the_static_table() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert!(decode(&mut decoder, 0, "0000 ff23").is_ok());
    for section in ["0000 ff24", "0000 5f54 0161"] {
        assert_eq!(in_section(&mut decoder, section), Problem::StaticIndex(99));
    }
    assert_eq!(
        in_instructions(&mut decoder, "ff24 0161"),
        Problem::StaticIndex(99)
    );
}

#[test]
fn section_3_2_2_entries_above_the_capacity() {
    let mut decoder = decoder("3f09"); // 40 bytes
    decoder
        .on_encoder_stream(&hex("44 61616161 04 62626262"))
        .unwrap();
    for instructions in [
        "44 61616161 05",
        "49",
        "44 61616161 05 6262626262",
        "45 6161616161 04 62626262",
        // age, Huffman-coded: "000000" in 30 bits.
        "c2 84 00000003",
        "c2 ff7f",
    ] {
        let mut decoder = super::decoder("3f09");
        let problem = match decoder.on_encoder_stream(&hex(instructions)) {
            Err(Error::EncoderStream(problem)) => problem,
            // The first has its value's length, but not yet the value.
            Ok(()) => in_instructions(&mut decoder, "6262626262"),
            other => panic!("{other:?}"),
        };
        assert_eq!(problem, Problem::EntryTooLarge, "{instructions}");
    }
}

#[test]
fn section_3_2_3_insertions_without_a_capacity() {
    let mut decoder = Decoder::new(LIMITS);
    assert_eq!(
        in_instructions(&mut decoder, "c000"),
        Problem::EntryTooLarge
    );
}

#[test]
fn section_4_1_1_integers_above_62_bits() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert_eq!(
        in_section(&mut decoder, "0000 ff ffffffffffffffffff"),
        Problem::IntegerTooLarge
    );
    assert_eq!(
        in_instructions(&mut decoder, "3f ffffffffffffffffff"),
        Problem::IntegerTooLarge
    );
}

#[test]
fn section_4_1_2_huffman_coded_strings() {
    for (literal, expected) in [
        // 'a' and three bits of padding that are not all ones; 'a' and a byte of padding; the end of string.
        ("81 18", Problem::HuffmanPadding),
        ("82 1fff", Problem::HuffmanPadding),
        ("84 ffffffff", Problem::HuffmanEndOfString),
    ] {
        let mut decoder = decoder(THREE_ENTRIES);
        assert_eq!(
            in_section(&mut decoder, &format!("0000 51 {literal}")),
            expected
        );
        assert_eq!(
            in_instructions(&mut decoder, &format!("c1 {literal}")),
            expected
        );
    }
}

#[test]
fn section_4_3_1_a_capacity_above_the_maximum() {
    let mut decoder = Decoder::new(LIMITS);
    decoder.on_encoder_stream(&hex("3fbd01")).unwrap();
    assert_eq!(
        in_instructions(&mut decoder, "3fbe01"),
        Problem::Capacity(221)
    );
}

#[test]
fn section_4_3_4_duplicates_of_what_was_never_inserted() {
    let mut decoder = decoder("3fbd01");
    assert_eq!(
        in_instructions(&mut decoder, "00"),
        Problem::DynamicIndex(0)
    );
}

#[test]
fn section_4_5_1_1_impossible_required_insert_counts() {
    // Six entries at most, so that counts are encoded modulo 12; three are inserted.
    let mut decoder = decoder(THREE_ENTRIES);
    for (section, encoded) in [("0d00", 13), ("0b00", 11), ("0c00", 12), ("0100", 1)] {
        assert_eq!(
            in_section(&mut decoder, section),
            Problem::RequiredInsertCount(encoded)
        );
    }
    // Without a table, any.
    let mut decoder = Decoder::new(DecoderLimits {
        table_capacity: 0,
        ..LIMITS
    });
    assert_eq!(
        in_section(&mut decoder, "0100"),
        Problem::RequiredInsertCount(1)
    );
}

#[test]
fn section_4_5_1_2_a_negative_base() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert!(decode(&mut decoder, 0, "0482 12").is_ok());
    assert_eq!(in_section(&mut decoder, "0483 12"), Problem::Base(3));
    assert_eq!(in_section(&mut decoder, "0080"), Problem::Base(0));
}

#[test]
fn sections_that_end_early() {
    let mut decoder = decoder(THREE_ENTRIES);
    for section in [
        "",
        "00",
        "ff",
        "0000 ff",
        "0000 51",
        "0000 5102 61",
        "0000 21",
        "0000 2161",
        "0000 2161 01",
    ] {
        assert_eq!(
            in_section(&mut decoder, section),
            Problem::Truncated,
            "{section}"
        );
    }
}

#[test]
fn a_wrong_section_is_found_when_its_stream_is_unblocked() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert_eq!(decode(&mut decoder, 4, "0500 ff24"), Ok(Decoded::Blocked));
    decoder.on_encoder_stream(&hex("00")).unwrap();
    assert_eq!(
        decoder.poll_unblocked(),
        Some(Unblocked {
            stream_id: 4,
            result: Err(Error::DecompressionFailed(Problem::StaticIndex(99))),
        })
    );
}
