//! The files that runs read.

use super::*;

#[test]
fn the_place_of_an_experiment_is_not_one_of_its_settings() {
    let directory = tempfile::tempdir().unwrap();
    let text = TEXT.replace("rate=12mbps, rtt=80ms", "trace=verizon.down, rtt=80ms");
    let plan = |place: &str| {
        let place = directory.path().join(place);
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("own.toml"), &text).unwrap();
        std::fs::write(place.join("verizon.down"), "1\n2\n").unwrap();
        let experiment = Experiment::load(&place.join("own.toml"), "fake", &[]).unwrap();
        Plan::new(&experiment, false).unwrap()
    };
    let (one, other) = (plan("a"), plan("b/c"));
    assert_eq!(one.settings_hash, other.settings_hash);
    assert_eq!(one.settings, other.settings);
    assert_eq!(one.inputs, other.inputs);
    assert!(
        one.inputs.contains_key("the trace verizon.down"),
        "{:?}",
        one.inputs
    );
}

#[test]
fn runs_continue_only_with_the_same_content_of_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let text = TEXT.replace("rate=12mbps, rtt=80ms", "trace=verizon.down, rtt=80ms");
    std::fs::write(place.join("own.toml"), text).unwrap();
    std::fs::write(place.join("verizon.down"), "1\n2\n").unwrap();
    let start = || {
        let experiment = Experiment::load(&place.join("own.toml"), "fake", &[]).unwrap();
        run(
            &experiment,
            &fake,
            &options(Some(&place.join("out"))),
            &mut |_| {},
        )
    };
    start().unwrap();
    assert_eq!(start().unwrap().resumed, 48);
    std::fs::write(place.join("verizon.down"), "1\n3\n").unwrap();
    let error = start().unwrap_err();
    assert!(error.is_of_other_runs());
    let error = error.to_string();
    assert!(
        error.contains("another content of the trace") && error.contains("verizon.down"),
        "{error}"
    );
    std::fs::remove_file(place.join("verizon.down")).unwrap();
    let error = start().unwrap_err().to_string();
    assert!(
        error.contains("own.toml:3: cannot read the trace"),
        "{error}"
    );
    std::fs::write(place.join("verizon.down"), "1\nlater\n").unwrap();
    let error = start().unwrap_err().to_string();
    assert!(
        error.contains("verizon.down: line 2") && error.contains("nothing was run"),
        "{error}"
    );
}
