use super::*;
use proptest::prelude::*;

#[test]
fn priority_fields_are_parsed_as_in_rfc_9218() {
    for (field, urgency, incremental) in [
        ("", 3, false),
        ("u=5", 5, false),
        ("i", 3, true),
        ("u=0, i", 0, true),
        ("i,u=7", 7, true),
        ("  u=1 ,\ti=?1 ", 1, true),
        ("u=1, i=?0", 1, false),
        ("u=1, u=2", 2, false),
        ("u=8", 3, false),
        ("u=-1", 3, false),
        ("u=1.5", 3, false),
        ("u=\"1\"", 3, false),
        ("u", 3, false),
        ("i=1", 3, false),
        ("u=2;x=1;y, i;z=\"a,b\"", 2, true),
        ("other=\"u=1, i\\\", \", u=4", 4, false),
        ("list=(a \"b)\";q 3);p=1, u=6", 6, false),
    ] {
        assert_eq!(
            field.parse(),
            Ok(Priority::new(urgency, incremental)),
            "{field}"
        );
    }
}

#[test]
fn text_that_is_no_dictionary_is_an_error() {
    for field in [
        "u=", "u=1,", ",u=1", "u=1 i", "U=1", "x=\"a", "x=(a", "=1", "u==1", "é",
    ] {
        assert_eq!(field.parse::<Priority>(), Err(InvalidPriority), "{field}");
    }
}

#[test]
fn formatted_priorities_parse_to_the_same_value() {
    for urgency in 0..=9 {
        for incremental in [false, true] {
            let priority = Priority::new(urgency, incremental);
            assert_eq!(priority.to_string().parse(), Ok(priority));
        }
    }
}

#[test]
fn weights_follow_urgency_unless_a_dependency_has_one() {
    let weight = |urgency| Priority::new(urgency, false).weight();
    assert_eq!(
        (0..=7).map(weight).collect::<Vec<_>>(),
        [256, 256, 220, 183, 147, 110, 110, 110]
    );
    let parent = Some(StreamId::from(4));
    for (given, counts) in [(0, 1), (1, 1), (16, 16), (256, 256), (u16::MAX, 256)] {
        let priority = Priority::weighted(parent, given);
        assert_eq!((priority.weight(), priority.parent()), (counts, parent));
    }
    let urgent = Priority {
        urgency: u8::MAX,
        ..Priority::default()
    };
    assert_eq!((urgent.weight(), urgent.parent()), (110, None));
}

proptest! {
    #[test]
    fn arbitrary_text_causes_no_panic(field in "\\PC{0,60}") {
        let _ = field.parse::<Priority>();
    }

    #[test]
    fn arbitrary_text_of_likely_characters_causes_no_panic(field in "[ui=?0-9,;() \"\\\\a.]{0,40}") {
        if let Ok(priority) = field.parse::<Priority>() {
            prop_assert!(priority.urgency <= Priority::MAX_URGENCY);
        }
    }
}
