//! Points that fill a space evenly (Wootton, Sergent and Phan-Tan-Luu; as Paasch, Khalili and
//! Bonaventure, CoNEXT 2013, used it to compare schedulers).

use marline_link::Seed;
use rand::Rng;

/// Candidates drawn for every point that is kept.
const CANDIDATES: usize = 15;
/// Steps of bisection, after which distances differ by less than candidates do.
const STEPS: usize = 40;
/// Sets of candidates that are tried for the right number of points.
const ATTEMPTS: u64 = 8;

/// Points in the unit cube with a minimal distance from each other.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Design {
    pub(super) points: Vec<Vec<f64>>,
    /// The sum of differences over all axes between any two points is at least this.
    pub(super) min_distance: f64,
}

/// About `count` points on `axes` axes, within 1 %. Equal arguments give equal points.
pub(super) fn design(count: usize, axes: usize, seed: u64) -> Design {
    let mut best: Option<Design> = None;
    let off = |design: &Design| design.points.len().abs_diff(count);
    for attempt in 0..ATTEMPTS {
        let candidates = draw(count * CANDIDATES, axes, Seed::new(seed).nth(attempt));
        let found = bisect(&candidates, count, axes);
        if best.as_ref().is_none_or(|best| off(&found) < off(best)) {
            best = Some(found);
        }
        if best.as_ref().is_some_and(|best| off(best) * 100 <= count) {
            break;
        }
    }
    best.unwrap_or(Design {
        points: Vec::new(),
        min_distance: 0.0,
    })
}

fn draw(count: usize, axes: usize, seed: Seed) -> Vec<Vec<f64>> {
    let mut rng = seed.rng();
    let mut unit = || (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    (0..count)
        .map(|_| (0..axes).map(|_| unit()).collect())
        .collect()
}

/// Searches the distance that keeps `count` candidates. The closest number seen is used, as a larger distance
/// does not always keep fewer candidates.
fn bisect(candidates: &[Vec<f64>], count: usize, axes: usize) -> Design {
    let (mut low, mut high) = (0.0, axes as f64);
    let mut best = Vec::new();
    let mut min_distance = 0.0;
    for _ in 0..STEPS {
        let distance = (low + high) / 2.0;
        let kept = keep(candidates, distance);
        let number = kept.len();
        if number.abs_diff(count) < best.len().abs_diff(count) {
            best = kept;
            min_distance = distance;
        }
        match number.cmp(&count) {
            std::cmp::Ordering::Equal => break,
            std::cmp::Ordering::Greater => low = distance,
            std::cmp::Ordering::Less => high = distance,
        }
    }
    Design {
        points: best
            .into_iter()
            .map(|index| candidates[index].clone())
            .collect(),
        min_distance,
    }
}

/// Keeps candidates, each the nearest to the previous one that is at least `distance` from all before.
fn keep(candidates: &[Vec<f64>], distance: f64) -> Vec<usize> {
    let axes = candidates.first().map_or(0, Vec::len);
    let mut center = vec![0.5; axes];
    let mut left: Vec<usize> = (0..candidates.len()).collect();
    let mut kept = Vec::new();
    // The first candidate is near the center, where no distance excludes it.
    let mut too_near = 0.0;
    loop {
        let mut nearest: Option<(f64, usize)> = None;
        left.retain(|&index| {
            let away = apart(&center, &candidates[index]);
            let stays = away >= too_near && kept.last() != Some(&index);
            if stays && nearest.is_none_or(|(least, _)| away < least) {
                nearest = Some((away, index));
            }
            stays
        });
        let Some((_, index)) = nearest else {
            return kept;
        };
        kept.push(index);
        center.clone_from(&candidates[index]);
        too_near = distance;
    }
}

/// The sum of differences: exact on every machine, and with many axes it separates better than the Euclidean
/// distance.
fn apart(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closest(points: &[Vec<f64>]) -> f64 {
        let mut least = f64::INFINITY;
        for (index, a) in points.iter().enumerate() {
            for b in &points[index + 1..] {
                least = least.min(apart(a, b));
            }
        }
        least
    }

    fn hash(design: &Design) -> u64 {
        let bits = design.points.iter().flatten().map(|x| x.to_bits());
        bits.fold(0xcbf2_9ce4_8422_2325, |hash, bits| {
            (hash ^ bits).wrapping_mul(0x0100_0000_01b3)
        })
    }

    #[test]
    fn designs_have_the_requested_size_and_distance() {
        for (count, axes) in [(60, 4), (20, 2)] {
            let design = design(count, axes, 1);
            assert!(closest(&design.points) >= design.min_distance);
            assert!(design.points.len().abs_diff(count) * 100 <= count);
            let random = draw(count, axes, Seed::new(5));
            assert!(design.min_distance > 2.0 * closest(&random));
        }
    }

    /// In the example of the literature, 252 points of 2000 candidates on 8 axes are 1.32 apart.
    #[test]
    fn distance_agrees_with_the_literature() {
        let candidates = draw(2000, 8, Seed::new(7));
        let design = bisect(&candidates, 253, 8);
        assert!(design.points.len().abs_diff(253) <= 2);
        assert!(
            (1.25..1.40).contains(&design.min_distance),
            "{}",
            design.min_distance
        );
    }

    #[test]
    fn designs_are_the_same_on_every_machine() {
        assert_eq!(design(30, 4, 1), design(30, 4, 1));
        assert_ne!(design(30, 4, 1), design(30, 4, 2));
        assert_eq!(hash(&design(30, 4, 1)), 1_672_698_877_559_802_005);
    }
}
