//! The randomness of the playground, in place of the crate of this name, which asks the browser or the system. Keys of
//! simulated connections protect nothing; drawn from here, they are the same in every run.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64's increment (Steele et al., 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

static STATE: AtomicU64 = AtomicU64::new(GOLDEN);

/// Fills `bytes`.
///
/// # Errors
/// None; ring expects that there may be some.
pub fn getrandom(bytes: &mut [u8]) -> Result<(), Error> {
    for part in bytes.chunks_mut(8) {
        let mut z = STATE.fetch_add(GOLDEN, Ordering::Relaxed);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..part.len()]);
    }
    Ok(())
}

/// There is no randomness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error;
