//! Measures how late timers expire: `cargo run -p marline --example timer_resolution`.
//!
//! Prints, for several durations, the lateness of the runtime's timer and of `tokio::time`, on an idle runtime and
//! on one with a busy task.

use std::future::poll_fn;
use std::time::Duration;

use marline::{Runtime, TokioRuntime};

const WAITS_US: [u64; 5] = [50, 200, 1_000, 3_000, 10_000];
/// The time for which the busy task works before it yields.
const BUSY_TIME: Duration = Duration::from_micros(20);

const ROUNDS: usize = 400;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let runtime = TokioRuntime::current()?;
    println!("load   wait us   timer         p50 us   p99 us   max us");
    measure(&runtime, "idle").await;
    let clock = runtime.clone();
    let busy = tokio::spawn(async move {
        loop {
            let end = clock.now() + BUSY_TIME;
            while clock.now() < end {
                std::hint::spin_loop();
            }
            tokio::task::yield_now().await;
        }
    });
    measure(&runtime, "busy").await;
    busy.abort();
    Ok(())
}

async fn measure(runtime: &TokioRuntime, load: &str) {
    for wait_us in WAITS_US {
        let wait = Duration::from_micros(wait_us);
        let mut timer = runtime.timer();
        let mut ours = Vec::with_capacity(ROUNDS);
        let mut theirs = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let deadline = runtime.now() + wait;
            timer.set(deadline);
            poll_fn(|cx| timer.poll(cx)).await;
            ours.push(runtime.now() - deadline);

            let deadline = runtime.now() + wait;
            tokio::time::sleep(wait).await;
            theirs.push(runtime.now() - deadline);
        }
        print(load, wait_us, "runtime", &mut ours);
        print(load, wait_us, "tokio::time", &mut theirs);
    }
}

fn print(load: &str, wait_us: u64, name: &str, late: &mut [Duration]) {
    late.sort_unstable();
    let at = |share: usize| late[(late.len() - 1) * share / 100].as_nanos() as f64 / 1e3;
    println!(
        "{load}   {wait_us:>7}   {name:<11} {:>8.1} {:>8.1} {:>8.1}",
        at(50),
        at(99),
        at(100)
    );
}
