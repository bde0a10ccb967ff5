//! Selects points of a sweep by their parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Value;
use super::cells::equal;
use super::error::{Place, Problem, unknown};

/// A point of a sweep.
pub(super) type Point = Arc<BTreeMap<String, Value>>;

/// The points at which each parameter of `condition` has the given value, or one of the given list; at least
/// one point. Errors name `place`, the position of the condition.
pub(super) fn choose(
    condition: &BTreeMap<String, Value>,
    place: &Place,
    points: &[Point],
) -> Result<Vec<usize>, Problem> {
    let known = || {
        points
            .iter()
            .flat_map(|point| point.keys())
            .map(String::as_str)
    };
    for name in condition.keys() {
        if known().next().is_none() {
            let text = "there is no sweep to choose points from; remove `where`";
            return Err(Problem::new(place, text));
        }
        if !known().any(|parameter| parameter == name) {
            return Err(Problem::new(place, unknown("parameter", name, known())));
        }
    }
    let chosen: Vec<_> = (0..points.len())
        .filter(|&index| {
            let mut wanted = condition.iter();
            wanted.all(|(name, want)| points[index].get(name).is_some_and(|is| fits(is, want)))
        })
        .collect();
    if chosen.is_empty() {
        return Err(Problem::new(
            place,
            "no point of the sweep has these values; change `where`",
        ));
    }
    Ok(chosen)
}

/// Whether a parameter has the wanted value. A list is either its value or a choice of values.
fn fits(value: &Value, want: &Value) -> bool {
    let is_member = |members: &Vec<Value>| members.iter().any(|member| equal(value, member));
    equal(value, want) || want.as_array().is_some_and(is_member)
}
