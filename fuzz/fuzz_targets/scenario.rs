//! Arbitrary experiments of the laboratory. Checks that a problem is reported in one line, with its place, and that each variant
//! has a cell at each point.
#![no_main]

use libfuzzer_sys::fuzz_target;
use marline_lab::scenario::{Experiment, Place};

fuzz_target!(|text: &str| {
    match Experiment::parse(text, "fuzz.toml", &[]) {
        Ok(experiment) => {
            let cells = experiment.points.len() * experiment.variants.len();
            assert_eq!(experiment.cells.len(), cells);
            for index in 0..cells {
                assert!(experiment.point_of(index) < experiment.points.len());
            }
        }
        Err(error) => {
            if let Place::Line { line, .. } = error.place {
                assert!((1..=text.split('\n').count()).contains(&line), "{error}");
            }
            assert!(!error.problem.is_empty() && !error.to_string().contains('\n'));
        }
    }
});
