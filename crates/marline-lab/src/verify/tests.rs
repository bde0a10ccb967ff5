use super::promises::Expected;
use super::*;

/// A short extent for every test run; the bounds of the specification are too narrow for it.
const SHORT: Extent = Extent {
    pings: 1000,
    cell: Duration::from_secs(40),
    channel: Duration::from_secs(6),
    steady: Duration::from_secs(1),
    lossy: 12_000,
    lossless: 2000,
};

/// The factor by which the bounds are widened.
const WIDER: f64 = 4.0;

fn outside(verified: &[Verified]) -> Vec<&'static str> {
    let outside = verified.iter().filter(|found| !found.passed);
    outside.map(|found| found.quantity).collect()
}

#[test]
fn presets_and_models_meet_their_specified_bounds() {
    let presets = PRESETS.iter().map(Subject::of);
    let models = MODELS.iter().map(Subject::of_model);
    let workloads = WORKLOADS.iter().map(Subject::of_workload);
    let mut subjects: Vec<_> = presets.chain(models).chain(workloads).collect();
    for promise in subjects.iter_mut().flat_map(|s| &mut s.promises) {
        promise.expected = match promise.expected {
            Expected::Near(value, tolerance) => Expected::Near(value, WIDER * tolerance),
            Expected::Between(low, high) => {
                Expected::Near((low + high) / 2.0, WIDER * (high - low) / 2.0)
            }
        };
    }
    let _files = write_traces(&mut subjects);
    let mut calls = 0;
    let verified = check(&subjects, Seed::new(1), &SHORT, &mut |progress| {
        calls += 1;
        assert_eq!(progress.done, calls);
    });
    for found in &verified {
        println!("{found:?}");
    }
    assert_eq!(outside(&verified), [""; 0]);
    let of_presets = PROMISES.iter().map(|(_, promises)| promises.len());
    let of_models = MODELS.iter().map(|model| model.promises.len());
    let of_workloads = WORKLOADS.iter().map(|workload| workload.promises.len());
    let promised: usize = of_presets.chain(of_models).chain(of_workloads).sum();
    assert_eq!(verified.len(), promised);
}

#[test]
fn models_meet_their_bounds_at_the_extent_of_the_command() {
    let models = MODELS.iter().map(|model| model.name);
    let workloads = WORKLOADS.iter().map(|workload| workload.name);
    let models: Vec<_> = models.chain(workloads).collect();
    let verified = verify(&models, 1, &mut |_| {}).unwrap();
    for found in &verified {
        println!("{found:?}");
    }
    assert_eq!(outside(&verified), [""; 0]);
}

#[test]
fn every_preset_specifies_delay_goodput_and_loss() {
    use Quantity::*;
    for preset in PRESETS {
        let promises = Subject::of(preset).promises;
        let quantities: BTreeSet<_> = promises.iter().map(|promise| promise.quantity).collect();
        assert_eq!(quantities.len(), promises.len(), "{}", preset.name);
        for needed in [
            &[RttMedian, RttMean][..],
            &[Goodput, Payload, PayloadAcknowledged],
            &[LossDown],
            &[LossUp],
        ] {
            let has = needed.iter().any(|quantity| quantities.contains(quantity));
            assert!(has, "{}: none of {needed:?}", preset.name);
        }
    }
    assert!(
        PROMISES
            .iter()
            .all(|(name, _)| Preset::find(name).is_some())
    );
}

#[test]
fn names_of_presets_and_models_are_unique() {
    let names: BTreeSet<_> = known().collect();
    assert_eq!(names.len(), known().count());
}

#[test]
fn a_link_outside_of_its_bounds_fails() {
    let check = |from: &str, to: &str| {
        let mut subject = Subject::of(Preset::find("ecmp").unwrap());
        assert!(subject.link.contains(from));
        subject.link = subject.link.replace(from, to);
        outside(&check(&[subject], Seed::new(1), &SHORT, &mut |_| {}))
    };
    assert_eq!(check("10mbps", "10mbps"), [""; 0]);
    assert_eq!(check("10mbps", "11mbps"), ["goodput", "buffer"]);
    assert_eq!(check("50ms", "51ms"), ["RTT mean", "buffer"]);
    assert_eq!(check("1bdp", "2bdp"), ["buffer"]);
    let lossy = check("50ms", "50ms,loss=5%");
    assert_eq!(lossy, ["goodput", "loss down", "loss up"]);
    let one_way = check("50ms", "50ms,up.loss=5%");
    assert_eq!(one_way, ["loss up"]);
    let all = check("10mbps", "no rate at all");
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn results_depend_only_on_the_seed() {
    let find = |names: &[&str], seed| {
        let subjects = PRESETS.iter().filter(|preset| names.contains(&preset.name));
        let subjects: Vec<_> = subjects.map(Subject::of).collect();
        let mut found = check(&subjects, Seed::new(seed), &SHORT, &mut |_| {});
        found.retain(|found| found.preset == "wifi-7");
        found
    };
    assert_eq!(find(&["wifi-7"], 1), find(&["ecmp", "wifi-7"], 1));
    assert_ne!(find(&["wifi-7"], 1), find(&["wifi-7"], 2));
}

#[test]
fn presets_are_selected_by_name() {
    let found = verify(&["mp-2-first"], 1, &mut |_| {}).unwrap();
    assert!(found.iter().all(|found| found.preset == "mp-2-first"));
    assert_eq!(outside(&found), [""; 0]);
    let unknown = verify(&["ecmp", "lte-b"], 1, &mut |_| {}).unwrap_err();
    let printed = unknown.to_string();
    assert!(
        printed.starts_with(
            "unknown preset, model or workload \"lte-b\"; there are lte-a, lte-a-lossy, "
        ),
        "{printed}"
    );
}

#[test]
fn expectations_are_displayed_with_their_bounds() {
    let words = [
        Expected::Near(21.2, 0.3),
        Expected::Near(0.0, 0.0),
        Expected::Between(19.0, 30.0),
    ];
    let words = words.map(|expected| expected.to_string());
    assert_eq!(words, ["21.2 ± 0.3", "0", "19 to 30"]);
}
