use marline_proto::coordination::history::Average;
use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);
const NOW: Instant = Instant::from_nanos(1 << 60);
const UNIX: Duration = Duration::from_secs(1_800_000_000);

fn old_by(age: Duration) -> PathRecord {
    let mut record = PathRecord::new(NOW - age);
    record.windows.add(Average::Mean, 50_000);
    record
}

#[test]
fn decode_adds_the_time_passed_to_the_age() {
    let bytes = encode(&old_by(HOUR), NOW, UNIX);
    // Another process, with a different clock.
    let now = Instant::from_nanos(1 << 61);
    let read = decode(&bytes, now, UNIX + 2 * HOUR).unwrap();
    assert_eq!(now - read.seen_at, 3 * HOUR);
    assert_eq!(read.windows, old_by(HOUR).windows);
}

#[test]
fn a_clock_that_went_backwards_leaves_ages_unchanged() {
    let bytes = encode(&old_by(HOUR), NOW, UNIX);
    assert!(!is_ahead(&bytes, UNIX) && !is_ahead(b"short", Duration::ZERO));
    for unix_time in [UNIX - HOUR, Duration::ZERO] {
        let read = decode(&bytes, NOW, unix_time).unwrap();
        assert_eq!(NOW - read.seen_at, HOUR);
        assert!(is_ahead(&bytes, unix_time));
    }
}

#[test]
fn oversized_and_truncated_values_are_rejected() {
    let bytes = encode(&old_by(HOUR), NOW, UNIX);
    for cut in 0..bytes.len() {
        assert_eq!(decode(&bytes[..cut], NOW, UNIX), None);
    }
    assert_eq!(decode(&vec![0; 1 << 20], NOW, UNIX), None);
}

proptest! {
    #[test]
    fn arbitrary_bytes_decode_to_a_past_record_or_none(
        bytes in prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..80),
        now: u64,
        unix_time: Duration,
    ) {
        let now = Instant::from_nanos(now);
        if let Some(record) = decode(&bytes, now, unix_time) {
            prop_assert!(record.seen_at <= now);
        }
    }
}
