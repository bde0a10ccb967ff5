//! Number of opportunities of a stream per round (HBES, Algorithm 1 and Table II).

use crate::settings::{Named, Word};

/// The conversion of weights to tokens, each an opportunity to fill a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tokens {
    /// The weight is the number of tokens.
    Weight,
    /// In proportion to the weight, `most` for the heaviest sibling, but at least one.
    Scattered {
        /// The rescale factor r of the paper, at least 1. Small values make rounds short and weights coarse: with
        /// 1, all are equal.
        most: u16,
        /// Rounding of fractions.
        rounding: Rounding,
    },
}

/// The rounding of fractional tokens; the paper's Table II rounds to the nearest whole number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rounding {
    /// To the nearest whole number, halves up.
    #[default]
    Nearest,
    /// Down.
    Floor,
    /// Up.
    Ceil,
}

impl Named for Rounding {
    const WORDS: &'static [Word<Self>] = &[
        Word {
            name: "nearest",
            about: "To the nearest whole number, halves up",
            value: Self::Nearest,
        },
        Word {
            name: "floor",
            about: "Down",
            value: Self::Floor,
        },
        Word {
            name: "ceil",
            about: "Up",
            value: Self::Ceil,
        },
    ];
}

impl Tokens {
    /// The paper's value: the heaviest sibling gets 10.
    pub const SCATTERED: Self = Self::Scattered {
        most: 10,
        rounding: Rounding::Nearest,
    };

    /// The tokens of a stream of `weight`, if `heaviest` is the largest weight among it and its
    /// siblings; at least 1.
    pub fn of(self, weight: u16, heaviest: u16) -> u32 {
        let Self::Scattered { most, rounding } = self else {
            return u32::from(weight).max(1);
        };
        let (share, whole) = (
            u64::from(weight) * u64::from(most),
            u64::from(heaviest.max(weight).max(1)),
        );
        let tokens = match rounding {
            Rounding::Nearest => (2 * share + whole) / (2 * whole),
            Rounding::Floor => share / whole,
            Rounding::Ceil => share.div_ceil(whole),
        };
        // At most `most`, because no sibling is heavier.
        tokens.max(1) as u32
    }
}
