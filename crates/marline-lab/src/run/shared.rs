//! Published values that stand for several points of a sweep.

use std::collections::{BTreeMap, BTreeSet};

use crate::scenario::Value;

/// A published value at a point.
#[derive(Clone, Copy, Debug)]
pub struct PublishedAt<'a> {
    /// The point.
    pub parameters: &'a BTreeMap<String, Value>,
    /// The value there.
    pub value: f64,
}

/// The parameters that vary between points while `values` do not depend on them: of these the paper has one value, such
/// as the mean over all pages of a sweep over pages.
pub fn shared_parameters(values: &[PublishedAt<'_>]) -> BTreeSet<String> {
    let names: BTreeSet<&String> = values.iter().flat_map(|at| at.parameters.keys()).collect();
    let is_shared = |name: &&String| {
        let mut groups: BTreeMap<Vec<(&String, String)>, Vec<f64>> = BTreeMap::new();
        for at in values {
            let others = at.parameters.iter().filter(|(other, _)| other != name);
            let others = others.map(|(other, value)| (other, value.to_string()));
            groups.entry(others.collect()).or_default().push(at.value);
        }
        let varies = groups.values().any(|values| values.len() > 1);
        let mut groups = groups.values();
        varies && groups.all(|values| values.iter().all(|value| *value == values[0]))
    };
    names.into_iter().filter(is_shared).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Point {
        parameters: BTreeMap<String, Value>,
        value: f64,
    }

    fn point(page: &str, loss: i64, value: f64) -> Point {
        let parameters = [("page", Value::from(page)), ("loss", Value::from(loss))];
        Point {
            parameters: parameters.map(|(k, v)| (k.to_owned(), v)).into(),
            value,
        }
    }

    fn shared(points: &[Point]) -> Vec<String> {
        let values = points.iter().map(|point| PublishedAt {
            parameters: &point.parameters,
            value: point.value,
        });
        let shared = shared_parameters(&values.collect::<Vec<_>>());
        shared.into_iter().collect()
    }

    #[test]
    fn a_value_for_all_pages_is_one_value() {
        let lossy = [point("a", 2, 55.0), point("b", 2, 55.0)];
        assert_eq!(shared(&lossy), ["page"]);
        let both = [
            point("a", 0, 1.0),
            point("b", 0, 1.0),
            point("a", 2, 55.0),
            point("b", 2, 55.0),
        ];
        assert_eq!(shared(&both), ["page"]);
    }

    #[test]
    fn equal_values_of_some_points_are_values_of_their_own() {
        let some = [
            point("a", 0, 0.0),
            point("b", 0, 0.0),
            point("a", 2, 7.0),
            point("b", 2, 8.0),
        ];
        assert!(shared(&some).is_empty());
        assert!(shared(&[point("a", 2, 55.0)]).is_empty());
    }
}
