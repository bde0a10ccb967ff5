//! Reading the Prometheus text format.

use std::collections::BTreeSet;

/// The samples of a page.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples(Vec<Sample>);

#[derive(Clone, Debug)]
struct Sample {
    name: String,
    labels: Vec<Label>,
    value: f64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Label {
    name: String,
    value: String,
}

impl Samples {
    /// Those of `text`. Lines that are not samples are skipped.
    pub(super) fn of(text: &str) -> Self {
        Self(text.lines().filter_map(Sample::of).collect())
    }

    /// The sum of the samples of the metric `name` that have all `labels`.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let all = self.0.iter().filter(|sample| sample.name == name);
        let fitting = all.filter(|sample| {
            let has = |(name, value): &(&str, &str)| sample.label(name) == Some(value);
            labels.iter().all(has)
        });
        fitting.map(|sample| sample.value).sum()
    }

    /// The values that the label has in samples of the metric `name`.
    pub(super) fn values(&self, name: &str, label: &str) -> BTreeSet<&str> {
        let all = self.0.iter().filter(|sample| sample.name == name);
        all.filter_map(|sample| sample.label(label)).collect()
    }
}

impl Sample {
    fn of(line: &str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let (key, value) = line.rsplit_once(' ')?;
        let value = value.parse().ok()?;
        let (name, labels) = match key.split_once('{') {
            Some((name, labels)) => (name, labels_of(labels.strip_suffix('}')?)?),
            None => (key, Vec::new()),
        };
        Some(Self {
            name: name.to_owned(),
            labels,
            value,
        })
    }

    fn label(&self, name: &str) -> Option<&str> {
        let found = self.labels.iter().find(|label| label.name == name)?;
        Some(&found.value)
    }
}

/// The labels of a list as `a="x",b="y"`.
fn labels_of(mut text: &str) -> Option<Vec<Label>> {
    let mut labels = Vec::new();
    while !text.is_empty() {
        let (name, rest) = text.split_once("=\"")?;
        let mut value = String::new();
        let mut chars = rest.char_indices();
        let end = loop {
            match chars.next()? {
                (at, '"') => break at,
                (_, '\\') => match chars.next()?.1 {
                    'n' => value.push('\n'),
                    other => value.push(other),
                },
                (_, other) => value.push(other),
            }
        };
        labels.push(Label {
            name: name.trim_start_matches(',').to_owned(),
            value,
        });
        text = &rest[end + 1..];
    }
    Some(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_summed_by_their_labels() {
        let samples = Samples::of(
            "# HELP a_total Help.\na_total{v=\"1\",s=\"x\"} 2\na_total{v=\"2\",s=\"x\"} 3\na_total_more 7\n\nbroken\n",
        );
        assert_eq!(samples.sum("a_total", &[]), 5.0);
        assert_eq!(samples.sum("a_total", &[("v", "2"), ("s", "x")]), 3.0);
        assert_eq!(samples.sum("a_total", &[("v", "3")]), 0.0);
        let values: Vec<_> = samples.values("a_total", "v").into_iter().collect();
        assert_eq!(values, ["1", "2"]);
    }

    #[test]
    fn labels_may_have_any_text() {
        let samples = Samples::of("a{x=\"1,\\\"} \\\\\\n\",y=\"2\"} 4");
        assert_eq!(samples.sum("a", &[("x", "1,\"} \\\n"), ("y", "2")]), 4.0);
    }
}
