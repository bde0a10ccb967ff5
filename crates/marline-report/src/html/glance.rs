//! A picture that is understood at a glance: bars on one linear axis, with their values beside them.

use std::fmt::Write;

use super::escape;

/// Horizontal bars in groups, which fit into the narrowest screen.
#[derive(Clone, Debug)]
pub struct Glance {
    caption: String,
    groups: Vec<Group>,
}

#[derive(Clone, Debug)]
struct Group {
    name: String,
    bars: Vec<Bar>,
}

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The name of what is measured.
    pub name: String,
    /// The index of the series, which chooses the colour: that of the other charts.
    pub series: usize,
    /// The length, in any unit that all bars share; not negative.
    pub length: f64,
    /// The value as text, such as `1.86 s`.
    pub value: String,
}

impl Glance {
    /// A picture without bars.
    pub fn new(caption: impl Into<String>) -> Self {
        Self {
            caption: caption.into(),
            groups: Vec::new(),
        }
    }

    /// Adds a group, whose name may be empty.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>, bars: Vec<Bar>) -> Self {
        let name = name.into();
        self.groups.push(Group { name, bars });
        self
    }

    pub(super) fn write(&self, html: &mut String) {
        let bars = self.groups.iter().flat_map(|group| &group.bars);
        let longest = bars.map(|bar| bar.length).fold(f64::MIN_POSITIVE, f64::max);
        let _ = write!(
            html,
            "<figure class=\"glance\"><figcaption>{}</figcaption><dl>",
            escape(&self.caption)
        );
        for Group { name, bars } in &self.groups {
            if !name.is_empty() {
                let _ = write!(html, "<dt class=\"group\">{}</dt>", escape(name));
            }
            for bar in bars {
                let _ = write!(
                    html,
                    "<dt>{}</dt><dd><span style=\"--share:{:.4};background:var(--s{})\"></span>{}</dd>",
                    escape(&bar.name),
                    bar.length / longest,
                    bar.series,
                    escape(&bar.value)
                );
            }
        }
        html.push_str("</dl></figure>\n");
    }
}
