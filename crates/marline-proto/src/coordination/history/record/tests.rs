use proptest::prelude::*;

use super::*;
use crate::coordination::history::Average;

const NOW: Instant = Instant::from_nanos(10_000_000_000_000);

fn any_windows() -> impl Strategy<Value = Windows> {
    let kind = prop_oneof![
        Just(Average::Mean),
        Just(Average::Window(MAX_WINDOW_SAMPLES)),
        Just(Average::Ewma { weight: 0.3 }),
    ];
    (kind, prop::collection::vec(0..=MAXIMUM_WINDOW, 0..40)).prop_map(|(kind, samples)| {
        let mut windows = Windows::default();
        for bytes in samples {
            windows.add(kind, bytes);
        }
        windows
    })
}

fn ago() -> impl Strategy<Value = Instant> {
    (0..10_000_000_u64).prop_map(|millis| NOW - Duration::from_millis(millis))
}

prop_compose! {
    fn any_model()(
        bandwidth in 1..=MAXIMUM_WINDOW,
        is_limit in any::<bool>(),
        random_loss in 0..=1_000_000_u32,
    ) -> SavedModel {
        SavedModel { bandwidth, is_limit, random_loss }
    }
}

prop_compose! {
    fn any_capacity()(
        window in 0..=MAXIMUM_WINDOW,
        nanos in 0..=varint::MAX,
        at in ago(),
        model in prop::option::of(any_model()),
    ) -> Capacity {
        Capacity { window, rtt: Duration::from_nanos(nanos), at, model }
    }
}

prop_compose! {
    fn any_record()(
        windows in any_windows(),
        capacity in prop::option::of(any_capacity()),
        samples in 0..=varint::MAX,
        seen_at in ago(),
    ) -> PathRecord {
        PathRecord { windows, capacity, live: None, samples, seen_at }
    }
}

#[test]
fn time_that_passed_before_decoding_adds_to_the_age() {
    let mut record = PathRecord::new(NOW);
    record.windows.add(Average::Mean, 50_000);
    let bytes = record.encode(NOW + Duration::from_secs(60));
    assert_eq!(
        bytes,
        [2, 0x80, 0, 0xea, 0x60, 0, 0, 1, 0x80, 0, 0xc3, 0x50, 1]
    );
    let read = PathRecord::decode(&bytes, NOW).unwrap();
    assert_eq!(read.seen_at, NOW - Duration::from_secs(60));
    assert!(read.is_expired(NOW, Duration::from_secs(60)));
    assert!(!read.is_expired(NOW, Duration::from_secs(61)));
}

#[test]
fn the_window_of_an_open_connection_is_not_encoded() {
    let mut record = PathRecord::new(NOW);
    record.live = Some(50_000);
    let read = PathRecord::decode(&record.encode(NOW), NOW).unwrap();
    assert_eq!(read, PathRecord::new(NOW));
}

#[test]
fn times_before_the_epoch_become_the_epoch() {
    let bytes = PathRecord::new(Instant::EPOCH).encode(NOW);
    let early = Instant::from_nanos(1);
    let read = PathRecord::decode(&bytes, early).unwrap();
    assert_eq!(read.seen_at, Instant::EPOCH);
}

#[test]
fn invalid_encodings_are_rejected() {
    let head = [1, 0, 0];
    for tail in [
        &[][..],
        // No windows; windows of an unknown kind; trailing bytes.
        &[0],
        &[0, 4],
        &[0, 0, 0],
        // A capacity of an unknown kind, and one beyond the largest window.
        &[2, 0],
        &[1, 0xc0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0],
        // A mean of no samples, and one of more than they can sum up to.
        &[0, 1, 0, 0],
        &[0, 1, 0xc0, 0, 0, 1, 0, 0, 0, 1, 1],
        // No samples although their count is not zero, too many, fewer than their count.
        &[0, 2, 0],
        &[0, 2, 33],
        &[0, 2, 2, 7],
        // A moving average that is not a number, below zero, beyond the largest window.
        &[0, 3, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0],
        &[0, 3, 0xbf, 0xf0, 0, 0, 0, 0, 0, 0],
        &[0, 3, 0x7f, 0xf0, 0, 0, 0, 0, 0, 0],
    ] {
        let bytes = [&head[..], tail].concat();
        assert_eq!(
            PathRecord::decode(&bytes, NOW),
            Err(InvalidRecord::Malformed),
            "{tail:?}"
        );
    }
    assert_eq!(PathRecord::decode(&[], NOW), Err(InvalidRecord::Malformed));
    let later = PathRecord::decode(&[3, 0, 0, 0, 0], NOW).unwrap_err();
    assert_eq!(later, InvalidRecord::Version(3));
    assert_eq!(
        later.to_string(),
        "a path record of version 3; this program reads versions 1 and 2"
    );
    assert!(PathRecord::decode(&[2, 0, 0, 0, 0], NOW).is_ok());
}

#[test]
fn records_of_the_version_before_have_capacities_without_a_model() {
    // Age 5, 3 samples, a capacity of 100 bytes with 7 ns and age 9, no windows.
    let read = PathRecord::decode(&[1, 5, 3, 1, 0x40, 100, 7, 9, 0], NOW).unwrap();
    assert_eq!(
        read.capacity,
        Some(Capacity {
            window: 100,
            rtt: Duration::from_nanos(7),
            at: NOW - Duration::from_millis(9),
            model: None,
        })
    );
    assert_eq!(read.samples, 3);
    // The same of the present version, with a model of 8 bytes per second as the limit and 4 losses of a million.
    let read = PathRecord::decode(&[2, 5, 3, 1, 0x40, 100, 7, 9, 2, 8, 4, 0], NOW).unwrap();
    assert_eq!(
        read.capacity.and_then(|capacity| capacity.model),
        Some(SavedModel {
            bandwidth: 8,
            is_limit: true,
            random_loss: 4,
        })
    );
    for impossible in [[3, 8, 4], [1, 0, 4]] {
        let bytes = [&[2, 5, 3, 1, 0x40, 100, 7, 9][..], &impossible, &[0]].concat();
        let read = PathRecord::decode(&bytes, NOW);
        assert_eq!(read, Err(InvalidRecord::Malformed), "{impossible:?}");
    }
}

proptest! {
    #[test]
    fn decoding_reverses_encoding(record in any_record()) {
        let bytes = record.encode(NOW);
        prop_assert!(bytes.len() <= PathRecord::MAX_ENCODED);
        prop_assert_eq!(PathRecord::decode(&bytes, NOW), Ok(record));
    }

    #[test]
    fn a_truncated_record_is_rejected(record in any_record(), cut: prop::sample::Index) {
        let bytes = record.encode(NOW);
        let cut = cut.index(bytes.len());
        prop_assert_eq!(PathRecord::decode(&bytes[..cut], NOW), Err(InvalidRecord::Malformed));
    }

    #[test]
    fn arbitrary_bytes_decode_to_a_valid_record_or_not_at_all(
        version in prop_oneof![3 => Just(VERSION), 1 => any::<u8>()],
        bytes in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..60),
        now: u64,
    ) {
        let bytes = [&[version], &bytes[..]].concat();
        let now = Instant::from_nanos(now);
        if let Ok(record) = PathRecord::decode(&bytes, now) {
            prop_assert!(record.seen_at <= now);
            for kind in [Average::Mean, Average::Window(3), Average::Ewma { weight: 0.1 }] {
                let average = record.windows.average(kind).unwrap_or_default();
                prop_assert!((0.0..=MAXIMUM_WINDOW as f64).contains(&average));
                let mut record = record.clone();
                record.windows.add(kind, MAXIMUM_WINDOW);
                prop_assert!(record.encode(now).len() <= PathRecord::MAX_ENCODED);
            }
        }
    }

    #[test]
    fn a_record_with_one_byte_changed_decodes_to_a_valid_record_or_not_at_all(
        record in any_record(),
        at: prop::sample::Index,
        byte: u8,
    ) {
        let mut bytes = record.encode(NOW);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = PathRecord::decode(&bytes, NOW) {
            prop_assert!(read.windows.0.is_sound());
        }
    }
}
