//! The exports of the module, for a worker that loads it once for each run: `input` takes the bytes of a scenario, `run`
//! runs it, and `output` has the answer, which is JSON with a digest and an outcome, or with an error.
#![expect(
    unsafe_code,
    reason = "symbols of a module are exported and imported by name"
)]

use std::cell::RefCell;

use marline_link::preset::PRESETS;
use serde_json::{Value, json, value::RawValue};

use crate::error::Error;
use crate::load;
use crate::scenario::Scenario;

thread_local! {
    /// The input of the caller, then its output.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

unsafe extern "C" {
    /// The share of the content that has arrived, from 0 to 1.
    safe fn progress(share: f64);
}

/// Where the caller writes `len` bytes of a scenario.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn input(len: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.resize(len, 0);
        buffer.as_mut_ptr()
    })
}

/// Where the answer is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn output() -> *const u8 {
    BUFFER.with_borrow(|buffer| buffer.as_ptr())
}

/// Runs the scenario; returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn run() -> usize {
    let scenario = BUFFER.take();
    answer(match outcome(&scenario) {
        Ok(text) => text,
        Err(error) => json!({ "error": error.to_string() }).to_string(),
    })
}

/// The laboratory's links with a name; returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn presets() -> usize {
    let presets = PRESETS.iter().map(|preset| {
        json!({ "name": preset.name, "link": preset.text, "about": preset.about, "source": preset.source })
    });
    answer(Value::from_iter(presets).to_string())
}

fn answer(text: String) -> usize {
    BUFFER.replace(text.into_bytes());
    BUFFER.with_borrow(Vec::len)
}

fn outcome(scenario: &[u8]) -> Result<String, Error> {
    let outcome = load::run(&Scenario::read(scenario)?, |share| progress(share))?;
    let (digest, json) = (outcome.digest(), RawValue::from_string(outcome.json())?);
    Ok(serde_json::to_string(&Answer {
        digest,
        outcome: json,
    })?)
}

/// The answer of a run that has an outcome.
#[derive(serde::Serialize)]
struct Answer {
    digest: String,
    outcome: Box<RawValue>,
}
