//! Randomness, split by purpose.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Where randomness comes from. Every link and every purpose of a link draws from a generator of its
/// own, so that a draw more in one place shifts nothing elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// Equal numbers, equal draws.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The seed for one purpose.
    #[must_use]
    pub fn of(self, purpose: &str) -> Self {
        // FNV-1a over the name, then mixed with the seed.
        let name = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mix(self.0 ^ mix(name)))
    }

    /// The seed for the `index`th of several that are alike.
    #[must_use]
    pub fn nth(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// A generator.
    pub fn rng(self) -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(self.0)
    }

    /// The seed as a number.
    pub const fn value(self) -> u64 {
        self.0
    }
}

/// The finalizer of SplitMix64.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::Seed;

    #[test]
    fn purposes_do_not_share_draws() {
        let seed = Seed::new(1);
        assert_eq!(seed.of("loss"), Seed::new(1).of("loss"));
        assert_ne!(seed.of("loss"), seed.of("jitter"));
        assert_ne!(seed.of("loss"), Seed::new(2).of("loss"));
        assert_ne!(seed.nth(0), seed.nth(1));
        assert_ne!(seed.of("a").of("b"), seed.of("b").of("a"));
    }
}
