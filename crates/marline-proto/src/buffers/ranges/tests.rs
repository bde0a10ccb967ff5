use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn adjacent_ranges_merge() {
    let mut set = RangeSet::new();
    assert_eq!(set.insert(4..6), 2);
    assert_eq!(set.insert(0..2), 2);
    assert_eq!(set.len(), 2);
    assert_eq!(set.insert(2..4), 2);
    assert!(set.iter().eq(std::iter::once(0..6)));
    assert_eq!(set.insert(1..5), 0);
    assert_eq!((set.min(), set.max()), (Some(0), Some(5)));
}

#[test]
fn removal_from_the_middle_splits_a_range() {
    let mut set = RangeSet::new();
    set.insert(0..10);
    assert_eq!(set.remove(3..5), 2);
    assert_eq!(set.iter().collect::<Vec<_>>(), [0..3, 5..10]);
    assert_eq!(set.iter().rev().collect::<Vec<_>>(), [5..10, 0..3]);
    assert_eq!(set.gaps(1..20).collect::<Vec<_>>(), [3..5, 10..20]);
    assert_eq!(set.pop_min(), Some(0..3));
}

proptest! {
    #[test]
    fn a_range_set_behaves_like_a_set_of_numbers(
        ops in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12), 0..80),
    ) {
        let (mut set, mut model) = (RangeSet::new(), BTreeSet::new());
        for (insert, start, len) in ops {
            let range = start..start + len;
            let changed = if insert {
                range.clone().filter(|&v| model.insert(v)).count()
            } else {
                range.clone().filter(|v| model.remove(v)).count()
            };
            let reported = if insert { set.insert(range) } else { set.remove(range) };
            prop_assert_eq!(reported, changed as u64);

            let members: Vec<u64> = set.iter().flatten().collect();
            prop_assert_eq!(members, model.iter().copied().collect::<Vec<_>>());
            let ranges: Vec<_> = set.iter().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(ranges.iter().all(|r| !r.is_empty()));
            prop_assert!((0..80).all(|v| set.contains(v) == model.contains(&v)));
            let gaps: Vec<u64> = set.gaps(5..50).flatten().collect();
            prop_assert_eq!(gaps, (5..50).filter(|v| !model.contains(v)).collect::<Vec<_>>());
        }
    }
}
