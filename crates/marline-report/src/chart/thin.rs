//! Thinning of points without visible change.

use std::collections::BTreeSet;

/// Keeps the first, lowest, highest and last of all points in the same pixel column. Points are in
/// pixels, ordered by x.
pub(super) fn columns(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    for point in points {
        if column
            .first()
            .is_some_and(|first| first.0.floor() != point.0.floor())
        {
            flush_column(&mut column, &mut kept);
        }
        column.push(point);
    }
    flush_column(&mut column, &mut kept);
    kept
}

fn flush_column(column: &mut Vec<(f64, f64)>, kept: &mut Vec<(f64, f64)>) {
    if column.len() > 4 {
        let extreme = |better: fn(f64, f64) -> bool| {
            (1..column.len()).fold(0, |best, at| {
                if better(column[at].1, column[best].1) {
                    at
                } else {
                    best
                }
            })
        };
        let mut picks = [
            0,
            extreme(|a, b| a < b),
            extreme(|a, b| a > b),
            column.len() - 1,
        ];
        picks.sort_unstable();
        let mut last = None;
        for at in picks {
            if last != Some(at) {
                kept.push(column[at]);
            }
            last = Some(at);
        }
        column.clear();
    } else {
        kept.append(column);
    }
}

/// Keeps one of each run of positions closer than `gap`. Positions are in pixels, in any order.
pub(super) fn positions(pixels: impl Iterator<Item = f64>, gap: f64) -> Vec<f64> {
    let mut pixels: Vec<f64> = pixels.collect();
    pixels.sort_by(f64::total_cmp);
    pixels.dedup_by(|later, earlier| *later - *earlier < gap);
    pixels
}

/// Keeps one of all points in the same square of `gap` pixels. Points are in any order.
pub(super) fn cloud(points: impl Iterator<Item = (f64, f64)>, gap: f64) -> Vec<(f64, f64)> {
    let mut taken = BTreeSet::new();
    points
        .filter(|(x, y)| taken.insert(((x / gap) as i64, (y / gap) as i64)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_keep_extremes() {
        let wave = (0..100_000).map(|n| {
            let y = match n {
                31_415 => 99.0,
                27_182 => -99.0,
                n => f64::from(n % 10),
            };
            (f64::from(n) / 1000.0, y)
        });
        let kept = columns(wave);
        assert!(kept.len() <= 400);
        assert!(kept.iter().any(|p| p.1 == 99.0) && kept.iter().any(|p| p.1 == -99.0));
        assert!(kept.is_sorted_by(|a, b| a.0 <= b.0));
    }

    #[test]
    fn sparse_points_are_kept() {
        let points = [(0.0, 1.0), (0.1, 5.0), (7.0, 2.0)];
        assert_eq!(columns(points.into_iter()), points);
        assert_eq!(positions([3.0, 1.0, 1.2].into_iter(), 0.5), [1.0, 3.0]);
        assert_eq!(cloud(points.into_iter(), 2.0), points);
        let near = [(1.0, 1.0), (9.0, 9.0), (1.5, 1.1)];
        assert_eq!(cloud(near.into_iter(), 2.0), near[..2]);
    }
}
