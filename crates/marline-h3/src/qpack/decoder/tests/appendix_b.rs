//! RFC 9204, appendix B, byte for byte.

use super::*;

fn table(decoder: &Decoder) -> Vec<(u64, String, String)> {
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    (0..decoder.table.insert_count())
        .filter_map(|index| {
            let entry = decoder.table.get(index)?;
            Some((index, text(&entry.name), text(&entry.value)))
        })
        .collect()
}

fn rows(rows: &[(u64, &str, &str)]) -> Vec<(u64, String, String)> {
    rows.iter()
        .map(|&(index, name, value)| (index, name.into(), value.into()))
        .collect()
}

#[test]
fn the_exchange_decodes_as_shown() {
    let mut decoder = Decoder::new(LIMITS);

    // B.1. Literal Field Line with Name Reference.
    let section = "0000 510b 2f69 6e64 6578 2e68 746d 6c";
    assert_eq!(
        decode(&mut decoder, 0, section),
        fields(&[(":path", "/index.html")])
    );
    assert_eq!(decoder.take_instructions(), None);

    // B.2. Dynamic Table.
    decoder
        .on_encoder_stream(&hex(
            "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
        ))
        .unwrap();
    assert_eq!(
        table(&decoder),
        rows(&[
            (0, ":authority", "www.example.com"),
            (1, ":path", "/sample/path"),
        ])
    );
    assert_eq!(decoder.table.size(), 106);
    assert_eq!(
        decode(&mut decoder, 4, "0381 10 11"),
        fields(&[(":authority", "www.example.com"), (":path", "/sample/path")])
    );
    assert_eq!(decoder.take_instructions().unwrap(), hex("84"));

    // B.3. Speculative Insert.
    decoder
        .on_encoder_stream(&hex(
            "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565",
        ))
        .unwrap();
    assert_eq!(decoder.table.size(), 160);
    assert_eq!(decoder.take_instructions().unwrap(), hex("01"));

    // B.4. Duplicate Instruction, Stream Cancellation: the duplicate arrives after the section, and too late.
    assert_eq!(
        decode(&mut decoder, 8, "0500 80 c1 81"),
        Ok(Decoded::Blocked)
    );
    decoder.on_stream_cancelled(8);
    assert_eq!(decoder.take_instructions().unwrap(), hex("48"));
    decoder.on_encoder_stream(&hex("02")).unwrap();
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(
        table(&decoder),
        rows(&[
            (0, ":authority", "www.example.com"),
            (1, ":path", "/sample/path"),
            (2, "custom-key", "custom-value"),
            (3, ":authority", "www.example.com"),
        ])
    );
    assert_eq!(decoder.table.size(), 217);

    // B.5. Dynamic Table Insert, Eviction.
    decoder
        .on_encoder_stream(&hex("810d 6375 7374 6f6d 2d76 616c 7565 32"))
        .unwrap();
    assert_eq!(
        table(&decoder),
        rows(&[
            (1, ":path", "/sample/path"),
            (2, "custom-key", "custom-value"),
            (3, ":authority", "www.example.com"),
            (4, "custom-key", "custom-value2"),
        ])
    );
    assert_eq!(decoder.table.size(), 215);
}

#[test]
fn the_exchange_decodes_when_every_instruction_is_cut() {
    let mut decoder = Decoder::new(LIMITS);
    let instructions = hex(
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468 \
         4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565 02 810d 6375 7374 6f6d 2d76 616c 7565 32",
    );
    for byte in instructions {
        decoder.on_encoder_stream(&[byte]).unwrap();
    }
    assert_eq!(decoder.table.insert_count(), 5);
    assert_eq!(decoder.table.size(), 215);
    assert!(decoder.unfinished.is_empty());
}

#[test]
fn a_blocked_section_is_decoded_when_the_duplicate_arrives() {
    let mut decoder = decoder(THREE_ENTRIES);
    assert_eq!(
        decode(&mut decoder, 8, "0500 80 c1 81"),
        Ok(Decoded::Blocked)
    );
    assert_eq!(decoder.poll_unblocked(), None);
    decoder.on_encoder_stream(&hex("02")).unwrap();
    assert_eq!(
        decoder.poll_unblocked(),
        Some(Unblocked {
            stream_id: 8,
            result: fields(&[(":authority", "a"), (":path", "/"), ("age", "c")]),
        })
    );
    assert_eq!(decoder.poll_unblocked(), None);
    assert_eq!(decoder.take_instructions().unwrap(), hex("88"));
}
