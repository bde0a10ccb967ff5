//! Parameters, and the points of a sweep.

use std::collections::{BTreeMap, HashMap, HashSet};

use marline::settings::split_unit;

use super::document::{Item, Node, Table};
use super::error::{Place, Problem};
use super::keys::is_settings_key;
use super::overrides::{Override, flatten};
use super::reader::Reader;
use super::{Value, wsp};

/// A parameter that varies independently of others.
#[derive(Clone, Debug)]
pub(super) struct Factor(pub(super) Vec<Choice>);

/// One value of a factor: its name in results, and the keys that it sets.
#[derive(Clone, Debug, Default)]
pub(super) struct Choice {
    pub(super) parameters: Vec<(String, Value)>,
    pub(super) overrides: Vec<Override>,
}

impl Choice {
    /// The parameters, by name.
    pub(super) fn by_name(&self) -> BTreeMap<String, Value> {
        self.parameters.iter().cloned().collect()
    }
}

/// Largest number of points: more are considered a mistake.
const MAX_POINTS: usize = 100_000;

/// Largest number of factors: every point has a value of each.
const MAX_FACTORS: usize = 100;

/// Reads `[sweep]`:
///
/// - `"link.loss" = ["0%", "1%"]`: a key and its values;
/// - `place.near = { link = "..." }`: a parameter with named values, each of which sets any keys;
/// - `points = [{ "link.rate" = "5mbps", "link.rtt" = "20ms" }]`: several keys at a time;
/// - `wsp = { n = 60, seed = 1, factors = { "link.rate" = ["5mbps", "20mbps"] } }`: points that fill
///   a space evenly.
pub(super) fn read_sweep(node: &Node) -> Result<Vec<Factor>, Problem> {
    let Item::Table(table) = &node.item else {
        return Err(node.problem("a sweep is a table [sweep]"));
    };
    let mut factors = Vec::new();
    for (key, node) in &table.0 {
        match key.as_str() {
            "points" => factors.push(read_points(node)?),
            "wsp" => factors.push(read_wsp(node)?),
            _ => read_factor(key, node, &mut factors)?,
        }
    }
    if factors.len() > MAX_FACTORS {
        return Err(node.problem(format_args!(
            "these are more than {MAX_FACTORS} parameters; leave some out"
        )));
    }
    if factors.is_empty() {
        return Err(node.problem("the sweep is empty; add \"link.loss\" = [\"0%\", \"1%\"]"));
    }
    let points = factors.iter().try_fold(1_usize, |product, factor| {
        product.checked_mul(factor.0.len())
    });
    if points.is_none_or(|points| points > MAX_POINTS) {
        return Err(node.problem(format_args!(
            "these are more than {MAX_POINTS} points; leave some out"
        )));
    }
    refuse_twice(&factors)?;
    Ok(factors)
}

/// Refuses a key that two factors set: the name of one would hide the value of the other.
fn refuse_twice(factors: &[Factor]) -> Result<(), Problem> {
    let mut seen: HashMap<&[String], Setter<'_>> = HashMap::new();
    for (factor, Factor(choices)) in factors.iter().enumerate() {
        for change in choices.iter().flat_map(|choice| &choice.overrides) {
            let place = &change.node.place;
            let first = seen.entry(&change.path).or_insert(Setter { factor, place });
            if first.factor != factor {
                return Err(change.node.problem(first.place.twice()));
            }
        }
    }
    Ok(())
}

/// Refuses a value that is there twice: results could not tell the two apart.
fn refuse_equal(node: &Node, choices: &[Choice]) -> Result<(), Problem> {
    let mut seen = HashSet::new();
    for choice in choices {
        let named = choice.parameters.iter();
        let named: Vec<_> = named
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        let name = named.join(", ");
        if seen.contains(&name) {
            return Err(node.problem(format_args!("{name} is there twice; leave one out")));
        }
        seen.insert(name);
    }
    Ok(())
}

/// The factor that sets a key, and the place where it does.
struct Setter<'a> {
    factor: usize,
    place: &'a Place,
}

/// Every combination of one choice of each factor; the last factor varies fastest.
pub(super) fn points(factors: &[Factor]) -> Vec<Choice> {
    factors
        .iter()
        .fold(vec![Choice::default()], |points, factor| {
            let with_each = points.iter().flat_map(|point| {
                factor.0.iter().map(|choice| {
                    let mut point = point.clone();
                    point.parameters.extend(choice.parameters.iter().cloned());
                    point.overrides.extend(choice.overrides.iter().cloned());
                    point
                })
            });
            with_each.collect()
        })
}

fn read_factor(key: &str, node: &Node, factors: &mut Vec<Factor>) -> Result<(), Problem> {
    let first = key.split('.').next().unwrap_or(key);
    let is_key = is_settings_key(first);
    match &node.item {
        Item::List(values) if !values.is_empty() => {
            let choices = values.iter().map(|value| Choice {
                parameters: vec![(key.to_owned(), value.value())],
                overrides: vec![Override::new(key, value.clone())],
            });
            let choices: Vec<_> = choices.collect();
            refuse_equal(node, &choices)?;
            factors.push(Factor(choices));
            Ok(())
        }
        Item::Table(table) if is_key => table
            .0
            .iter()
            .try_for_each(|(inner, node)| read_factor(&format!("{key}.{inner}"), node, factors)),
        Item::Table(table) if !table.0.is_empty() => {
            let choices: Result<Vec<_>, _> = table
                .0
                .iter()
                .map(|(name, node)| {
                    if name.is_empty() {
                        return Err(node.problem("a named value has a name of a character or more"));
                    }
                    Ok(Choice {
                        parameters: vec![(key.to_owned(), plain(name))],
                        overrides: flatten(table_of(node)?)?,
                    })
                })
                .collect();
            let choices = choices?;
            refuse_equal(node, &choices)?;
            factors.push(Factor(choices));
            Ok(())
        }
        Item::List(_) | Item::Table(_) => {
            Err(node.problem("the sweep is empty; add values to the list"))
        }
        _ => Err(node.problem(format_args!(
            "{} is one value; a sweep has a list of them, as [\"0%\", \"1%\"]",
            node.kind()
        ))),
    }
}

/// A name as a number, if it is one.
fn plain(name: &str) -> Value {
    match (name.parse::<i64>(), name.parse::<f64>()) {
        (Ok(number), _) => number.into(),
        (_, Ok(number)) if number.is_finite() => number.into(),
        _ => name.into(),
    }
}

fn table_of(node: &Node) -> Result<&Table, Problem> {
    match &node.item {
        Item::Table(table) => Ok(table),
        _ => Err(node.problem(format_args!(
            "{} is not a table; write {{ \"KEY\" = VALUE }}",
            node.kind()
        ))),
    }
}

fn read_points(node: &Node) -> Result<Factor, Problem> {
    let mut choices: Vec<Choice> = Vec::new();
    for member in node.members() {
        let overrides = flatten(table_of(member)?)?;
        let parameters: Vec<_> = overrides
            .iter()
            .map(|change| (change.key(), change.node.value()))
            .collect();
        if let Some(first) = choices.first() {
            let same = first.parameters.len() == parameters.len()
                && first
                    .parameters
                    .iter()
                    .all(|(key, _)| parameters.iter().any(|(other, _)| key == other));
            if !same {
                return Err(member.problem("every point has the same keys; the first has others"));
            }
        }
        choices.push(Choice {
            parameters,
            overrides,
        });
    }
    if choices.iter().all(|choice| choice.overrides.is_empty()) {
        return Err(node.problem("the sweep is empty; add points"));
    }
    refuse_equal(node, &choices)?;
    Ok(Factor(choices))
}

fn read_wsp(node: &Node) -> Result<Factor, Problem> {
    let mut reader = Reader::of(node)?;
    let count = reader.required("n", "n = 60", |node| node.within(2..=2000))? as usize;
    let seed = reader.optional("seed", |node| node.within(0..=u64::MAX))?;
    let example = "factors = { \"link.rate\" = [\"5mbps\", \"20mbps\"] }";
    let axes = reader.required("factors", example, |node| {
        let mut axes = Vec::new();
        read_axes("", table_of(node)?, &mut axes)?;
        if axes.is_empty() {
            return Err(node.problem("the sweep is empty; name a key with its bounds"));
        }
        Ok(axes)
    })?;
    reader.finish()?;
    let design = wsp::design(count, axes.len(), seed.unwrap_or(1));
    let choices = design.points.iter().map(|point| {
        let mut choice = Choice::default();
        for (axis, share) in axes.iter().zip(point) {
            let value = axis.at(*share);
            choice.parameters.push((axis.key.clone(), value.value()));
            choice.overrides.push(Override::new(&axis.key, value));
        }
        choice
    });
    let choices: Vec<_> = choices.collect();
    refuse_equal(node, &choices)?;
    Ok(Factor(choices))
}

/// A key that varies between bounds.
struct Axis {
    key: String,
    low: f64,
    high: f64,
    unit: String,
    bounds: Node,
}

impl Axis {
    /// The value at `share` of the distance from the lower to the upper bound: in whole milliseconds, or with
    /// two decimals for other units.
    fn at(&self, share: f64) -> Node {
        let value = self.low + (self.high - self.low) * share;
        let value = if self.unit == "ms" {
            value.round()
        } else {
            (value * 100.0).round() / 100.0
        };
        let item = if self.unit.is_empty() {
            Item::Float(value)
        } else {
            Item::Text(format!("{value}{}", self.unit))
        };
        Node {
            place: self.bounds.place.clone(),
            item,
        }
    }
}

fn read_axes(prefix: &str, table: &Table, axes: &mut Vec<Axis>) -> Result<(), Problem> {
    for (key, node) in &table.0 {
        let key = format!("{prefix}{key}");
        match &node.item {
            Item::Table(inner) => read_axes(&format!("{key}."), inner, axes)?,
            _ => axes.push(read_axis(key, node)?),
        }
    }
    Ok(())
}

fn read_axis(key: String, node: &Node) -> Result<Axis, Problem> {
    let bounds: Result<Vec<_>, _> = node.members().iter().map(Node::words).collect();
    let bounds = bounds?;
    let parsed: Vec<_> = bounds.iter().filter_map(|text| split_unit(text)).collect();
    match parsed.as_slice() {
        [(low, unit), (high, other)] if unit == other && low < high => Ok(Axis {
            key,
            low: *low,
            high: *high,
            unit: (*unit).to_owned(),
            bounds: node.clone(),
        }),
        _ => Err(node.problem(
            "a space has a lower and a higher bound of one unit, as [\"5mbps\", \"20mbps\"]",
        )),
    }
}
