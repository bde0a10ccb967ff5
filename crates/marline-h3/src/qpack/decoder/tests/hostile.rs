//! Arbitrary bytes neither panic nor take more memory than the limits allow.

use super::*;
use proptest::prelude::*;

/// Bytes that are often small indices and lengths, so that much of them is valid.
fn bytes(length: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        any::<u8>(),
        prop::sample::select(vec![
            0x00, 0x01, 0x02, 0x03, 0x10, 0x11, 0x3f, 0x41, 0x43, 0x61, 0x80, 0x81, 0x82, 0xc0,
            0xc1, 0xff,
        ]),
    ];
    prop::collection::vec(byte, 0..length)
}

#[derive(Clone, Debug)]
enum Input {
    Instructions(Vec<u8>),
    Section(u64, Vec<u8>),
    Cancel(u64),
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        4 => bytes(80).prop_map(Input::Instructions),
        4 => (0..8_u64, bytes(40)).prop_map(|(stream_id, bytes)| Input::Section(stream_id, bytes)),
        1 => (0..8_u64).prop_map(Input::Cancel),
    ]
}

fn size(decoded: &Decoded) -> usize {
    match decoded {
        Decoded::Fields(lines) => lines.iter().map(FieldLine::size).sum(),
        Decoded::Blocked | Decoded::TooLarge => 0,
    }
}

proptest! {
    #[test]
    fn arbitrary_input_stays_within_the_limits(
        table_capacity in 0..300_u64,
        inputs in prop::collection::vec(input(), 0..40),
    ) {
        let limits = DecoderLimits {
            table_capacity,
            blocked_streams: 3,
            max_field_section_size: 400,
            blocked_bytes: 300,
        };
        let mut decoder = Decoder::new(limits);
        if table_capacity > 0 {
            let mut capacity = Vec::new();
            integer::encode(table_capacity, 5, 0x20, &mut capacity);
            prop_assert!(decoder.on_encoder_stream(&capacity).is_ok());
        }
        for input in inputs {
            // Errors end a connection; going on is a harder test.
            match input {
                Input::Instructions(bytes) => {
                    let _ = decoder.on_encoder_stream(&bytes);
                }
                Input::Section(stream_id, bytes) => {
                    if let Ok(decoded) = decoder.decode(stream_id, bytes.into()) {
                        prop_assert!(size(&decoded) <= 400);
                    }
                }
                Input::Cancel(stream_id) => decoder.on_stream_cancelled(stream_id),
            }
            while let Some(unblocked) = decoder.poll_unblocked() {
                prop_assert_ne!(&unblocked.result, &Ok(Decoded::Blocked));
                if let Ok(decoded) = unblocked.result {
                    prop_assert!(size(&decoded) <= 400);
                }
            }
            prop_assert!(decoder.table.size() <= decoder.table.capacity());
            prop_assert!(decoder.table.capacity() as u64 <= table_capacity);
            // Two strings of at most 30 bits for each byte, and three integers.
            prop_assert!(decoder.unfinished.len() <= 8 * table_capacity as usize + 30);
        }
    }

    #[test]
    fn a_cut_changes_nothing(bytes in bytes(200), cuts in prop::collection::vec(0..200_usize, 0..10)) {
        let mut whole = Decoder::new(LIMITS);
        whole.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
        let mut cut = Decoder::new(LIMITS);
        cut.on_encoder_stream(&hex(THREE_ENTRIES)).unwrap();
        let mut cuts: Vec<_> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let expected = whole.on_encoder_stream(&bytes);
        let result = cuts
            .windows(2)
            .try_for_each(|part| cut.on_encoder_stream(&bytes[part[0]..part[1]]));
        prop_assert_eq!(result, expected);
        prop_assert_eq!(cut.table.insert_count(), whole.table.insert_count());
        prop_assert_eq!(cut.table.size(), whole.table.size());
        if expected.is_ok() {
            prop_assert_eq!(cut.unfinished, whole.unfinished);
        }
    }
}
