//! Seeds of random number generators, derived by purpose.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// A seed from which generators are derived. Every link, and every purpose within a link, has its own
/// generator, so that an additional draw in one place does not change draws elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(u64);

impl Seed {
    /// A root seed. Equal values give equal draws.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Derives the seed for one purpose. The name is part of the result.
    #[must_use]
    pub fn of(self, purpose: &str) -> Self {
        // FNV-1a over the name, mixed with the seed.
        let name = purpose.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self(mix(self.0 ^ mix(name)))
    }

    /// Derives the seed of the `index`-th of several instances.
    #[must_use]
    pub fn nth(self, index: u64) -> Self {
        Self(mix(self.0 ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// A generator with this seed.
    pub fn rng(self) -> Pcg64Mcg {
        Pcg64Mcg::seed_from_u64(self.0)
    }

    /// The seed as an integer.
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
    fn seeds_of_different_purposes_differ() {
        let seed = Seed::new(1);
        assert_eq!(seed.of("loss"), Seed::new(1).of("loss"));
        assert_ne!(seed.of("loss"), seed.of("jitter"));
        assert_ne!(seed.of("loss"), Seed::new(2).of("loss"));
        assert_ne!(seed.nth(0), seed.nth(1));
        assert_ne!(seed.of("a").of("b"), seed.of("b").of("a"));
    }
}
