use super::{Backoff, Edca};
use crate::Seed;

fn backoff() -> Backoff {
    Backoff::new(Edca::BEST_EFFORT, 7, Seed::new(1))
}

#[test]
fn a_fresh_contender_waits_for_an_aifs_only() {
    assert_eq!(backoff().turn(1_000), 1_000 + 43_000);
}

#[test]
fn slots_count_after_the_aifs() {
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
fn the_window_doubles_until_the_frame_is_given_up() {
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
fn backoffs_are_uniform() {
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
