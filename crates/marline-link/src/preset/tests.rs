use std::collections::BTreeSet;
use std::time::Duration;

use super::{PRESETS, Preset};
use crate::spec::{LinkSpec, Radio};

#[test]
fn every_preset_is_a_valid_link_with_a_source() {
    let mut names = BTreeSet::new();
    for preset in PRESETS {
        let link: LinkSpec = preset
            .text
            .parse()
            .unwrap_or_else(|error| panic!("{}: {error}", preset.name));
        assert_eq!(preset.link(), link);
        assert_eq!(preset.name.parse(), Ok(link.clone()));
        assert_eq!(link.to_string().parse(), Ok(link));
        assert!(names.insert(preset.name), "duplicate name {}", preset.name);
        assert!(!preset.about.is_empty() && !preset.source.is_empty());
    }
}

#[test]
fn keys_after_a_preset_override_it() {
    let link: LinkSpec = "lte-a, loss=1%, lte.rate=10mbps".parse().unwrap();
    let Radio::Lte(lte) = &link.radio else {
        panic!("no radio: {link:?}");
    };
    assert_eq!(lte.rate, 10_000_000);
    assert_eq!(link.up.loss.to_string(), "1%");
    assert_eq!(link.up.delay, Duration::from_micros(12_500));
    assert_eq!(link.up.delay, link.down.delay);
    let wired = Preset::find("wifi-7").unwrap().link();
    assert_eq!(wired.radio, Radio::None);
    assert_eq!(
        wired.with("loss", "0%").unwrap(),
        "wifi-7,loss=0%".parse().unwrap()
    );
}
