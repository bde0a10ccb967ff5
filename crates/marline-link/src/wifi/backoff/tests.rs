use super::{Backoff, Edca};
use crate::Seed;

fn backoff() -> Backoff {
    Backoff::new(Edca::BEST_EFFORT, 7, Seed::new(1))
}

#[test]
fn without_backoff_access_follows_after_an_aifs() {
    assert_eq!(backoff().access_time(1_000), 1_000 + 43_000);
}

#[test]
fn backoff_counts_down_only_after_the_aifs() {
    let mut backoff = backoff();
    backoff.slots = 10;
    backoff.freeze(3);
    assert_eq!(backoff.slots, 10);
    backoff.freeze(7);
    assert_eq!(backoff.slots, 6);
    backoff.freeze(u64::MAX);
    assert_eq!(backoff.slots, 0);
}

#[test]
fn the_window_doubles_until_the_retry_limit_resets_it() {
    let mut backoff = backoff();
    let windows: Vec<u32> = (0..9)
        .map(|_| {
            backoff.fail();
            backoff.window
        })
        .collect();
    assert_eq!(windows, [31, 63, 127, 255, 511, 1023, 1023, 15, 31]);
    backoff.succeed();
    assert_eq!(backoff.window, 15);
}

#[test]
fn backoffs_are_uniform_over_the_window() {
    let mut backoff = backoff();
    let mut counts = [0; 16];
    for _ in 0..16_000 {
        backoff.succeed();
        counts[backoff.slots as usize] += 1;
    }
    assert!(
        counts.iter().all(|&count| (850..1150).contains(&count)),
        "{counts:?}"
    );
}
