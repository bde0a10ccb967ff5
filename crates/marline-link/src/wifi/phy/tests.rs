use std::time::Duration;

use super::{Phy, Width, answer, control};

#[test]
fn bits_per_symbol_match_the_standard() {
    for (width, index, expected) in [
        (Width::Ht20, 7, 260),
        (Width::Ht40, 7, 540),
        (Width::Ht20, 15, 520),
        (Width::Ht40, 15, 1080),
        (Width::Ht20, 0, 26),
    ] {
        assert_eq!(Phy::ht(width, index, false).bits_per_symbol(), expected);
    }
    let vht = Phy {
        width: Width::Vht80,
        mcs: 9,
        streams: 2,
        short_guard_interval: true,
    };
    assert_eq!(vht.bits_per_symbol(), 3120);
    assert!(vht.is_valid());
    assert!(!Phy { mcs: 10, ..vht }.is_valid());
    assert!(!Phy::ht(Width::Ht20, 32, false).is_valid());
}

#[test]
fn control_frames_take_whole_symbols() {
    assert_eq!(control(14), 28_000);
    assert_eq!(control(32), 32_000);
    assert_eq!(answer(1), 44_000);
    assert_eq!(answer(2), 48_000);
}

#[test]
fn a_ppdu_takes_preamble_and_whole_symbols() {
    // 1,538 bytes take 48 symbols of 260 bits.
    assert_eq!(Phy::ht(Width::Ht20, 7, false).ppdu(1538), 36_000 + 192_000);
    // 172.8 us of short symbols are rounded up to 176 us.
    assert_eq!(Phy::ht(Width::Ht20, 7, true).ppdu(1538), 36_000 + 176_000);
    assert_eq!(Phy::ht(Width::Ht40, 15, false).ppdu(1538), 40_000 + 48_000);
}

#[test]
fn bytes_within_is_the_largest_size_of_a_duration() {
    let limit = Duration::from_micros(5484);
    for index in 0..32 {
        for short in [false, true] {
            for width in [Width::Ht20, Width::Ht40, Width::Vht80] {
                let phy = Phy::ht(width, index, short);
                let most = phy.bytes_within(limit);
                assert!(phy.ppdu(most) <= 5_484_000);
                assert!(phy.ppdu(most + 1) > 5_484_000, "{phy:?}");
            }
        }
    }
    assert_eq!(
        Phy::ht(Width::Ht20, 7, false).bytes_within(Duration::ZERO),
        0
    );
}
