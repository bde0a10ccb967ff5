use super::*;

/// The test vector of ChaCha with 12 rounds and zero key and nonce (draft-strombergson-chacha-test-vectors-01, TC1).
#[test]
fn the_generator_is_chacha_with_twelve_rounds() {
    let mut block = [0; 16];
    SecureRng::from_seed([0; 32]).fill(&mut block);
    assert_eq!(
        block,
        [
            0x9b, 0xf4, 0x9a, 0x6a, 0x07, 0x55, 0xf9, 0x53, 0x81, 0x1f, 0xce, 0x12, 0x5f, 0x26,
            0x83, 0xd5,
        ]
    );
}

#[test]
fn equal_seeds_give_equal_numbers_and_forks_give_others() {
    let mut rng = SecureRng::from_seed([7; 32]);
    let mut same = SecureRng::from_seed([7; 32]);
    let mut fork = rng.fork();
    let mut same_fork = same.fork();
    assert_eq!(fork.number(), same_fork.number());
    let numbers = [rng.number(), same.number(), fork.number()];
    assert_eq!(numbers[0], numbers[1]);
    assert_ne!(numbers[0], numbers[2]);
}

#[test]
fn distances_between_skipped_numbers_grow_up_to_their_limit() {
    let mut rng = ConnectionRng::new(SecureRng::from_seed([1; 32]));
    let mut last = 0;
    for _ in 0..100 {
        let base = last.clamp(64, 1 << 16);
        let next = rng.next_skip(last);
        assert!((last + base..last + 2 * base).contains(&next), "{next}");
        last = next;
    }
}
