//! Embedded experiments.

use super::*;

/// `lab/agreement` compares the backends.
#[test]
fn a_chosen_backend_leaves_variants_their_own() {
    let backends = |text: &str| {
        let mut experiment = read(&with(text));
        experiment.run_in(BackendKind::Emu);
        let cells = experiment.cells.iter();
        cells.map(|cell| cell.settings.backend).collect::<Vec<_>>()
    };
    let (sim, emu) = (BackendKind::Sim, BackendKind::Emu);
    let variants = "[variant.a]\n[variant.b]\nbackend = 'sim'\n[variant.c]\nbackend = 'emu'";
    assert_eq!(backends(variants), [emu, sim, emu]);
    assert_eq!(backends("[sweep]\nbackend = ['sim', 'emu']"), [sim, emu]);
    assert_eq!(backends(""), [emu]);
}

#[test]
fn the_library_contains_the_experiments_and_their_tables() {
    let known = super::embedded();
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let listed = list(&directory).unwrap();
    let listed: Vec<_> = listed.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!(known, listed);
    for id in known {
        Experiment::load_embedded(id, &[]).unwrap();
    }
    assert!(Experiment::load_embedded("no/such", &[]).is_err());
}
