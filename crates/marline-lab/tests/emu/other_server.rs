//! Programs that serve instead of marline.

use std::fs;

use marline_lab::emu::Emulator;
use marline_lab::scenario::{Backend, Experiment, Outcome, RunError};

use crate::job::job;
use crate::setup;

/// Loads a page from a program; `None` if this machine cannot.
fn load(command: &str) -> Option<Result<Outcome, RunError>> {
    // Not every kernel allows others in namespaces.
    let cc = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let cc = cc.trim();
    let text = format!(
        "title = 'x'\nbackend = 'emu'\ncc = '{cc}'\ntime_limit = '60s'\n\
         link = 'rate=20mbps,rtt=20ms,buffer=100kB'\nworkload.page = 'cloned/reddit'\n\
         [http]\nversion = '1.1c'\nserver = '''{command}'''"
    );
    let experiment = Experiment::parse(&text, "page.toml", &[]).unwrap();
    let job = job(&experiment.cells[0]);
    match Emulator::default().run(&job) {
        Err(RunError::Unsupported(why)) => {
            println!("skipped: {why}");
            None
        }
        result => Some(result),
    }
}

/// The directories of such programs, and the processes that were started in one.
fn left() -> (usize, usize) {
    let prefix = format!("marline-server-{}-", std::process::id());
    let directories = fs::read_dir(std::env::temp_dir()).unwrap().flatten();
    let named = directories.filter(|one| one.file_name().to_string_lossy().starts_with(&prefix));
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let places = processes.filter_map(|one| fs::read_link(one.path().join("cwd")).ok());
    let inside = places.filter(|place| place.to_string_lossy().contains(&prefix));
    (named.count(), inside.count())
}

#[test]
fn a_page_is_loaded_from_a_program_which_leaves_nothing() {
    let _alone = setup::exclusive();
    // The first process of the group is a shell that waits.
    let command = "cd \"$MARLINE_ROOT\"; \
                   python3 -m http.server --protocol HTTP/1.1 --bind $MARLINE_ADDRESS $MARLINE_PORT; true";
    let Some(outcome) = load(command) else { return };
    let metrics = outcome.unwrap().metrics;
    // 470 kB take 0.19 s at least.
    assert!(metrics["page_load_s"] > 0.19, "{metrics:?}");
    assert!(metrics["connections"] > 1.0, "{metrics:?}");
    assert_eq!(left(), (0, 0));
}

#[test]
fn a_program_that_ends_is_an_error_that_repeats_its_last_line() {
    let _alone = setup::exclusive();
    let Some(outcome) = load("echo no such option: -x >&2; exit 3") else {
        return;
    };
    let error = outcome.unwrap_err().to_string();
    let expected =
        "ended at once (exit status: 3); it must stay in the foreground: no such option: -x";
    assert!(error.contains(expected), "{error}");
    assert_eq!(left(), (0, 0));
}
