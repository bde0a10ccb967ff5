//! Runs a scenario of the playground natively: `marline-playground '{"links": ["rate=20mbps,rtt=40ms"], ..}'`.

use marline_playground::{Error, Scenario, run};

fn main() {
    let Some(scenario) = std::env::args().nth(1) else {
        eprintln!("usage: marline-playground SCENARIO, which is JSON");
        std::process::exit(2);
    };
    if let Err(error) = print(&scenario) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Prints the digest of the outcome, and the outcome.
fn print(scenario: &str) -> Result<(), Error> {
    let outcome = run(&Scenario::read(scenario.as_bytes())?, |_| ())?;
    println!("{}\n{}", outcome.digest(), outcome.json());
    Ok(())
}
