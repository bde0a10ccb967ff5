//! Single runs over time.

use marline_report::Report;
use marline_report::chart::{Fetch, Picture, Stack, Waterfall};

use crate::run::Record;
use crate::run::close_up::{self, Cell};
use crate::scenario::Watched;

use super::data::ReportData;
use super::names::Quantity;
use super::panels::Panels;

/// Runs that are shown at once; others are folded.
const SHOWN: usize = 6;

pub(super) fn add(page: Report, data: &ReportData) -> Report {
    let mut runs = Vec::new();
    let cells = close_up::cells(&data.plan, &data.results);
    for cells in cells.chunk_by(|a, b| a.point == b.point) {
        let close_ups: Vec<_> = cells
            .iter()
            .filter_map(|cell| CloseUp::of(data, *cell))
            .collect();
        let panels: Vec<_> = close_ups.iter().map(|close_up| &close_up.panels).collect();
        let shared = Panels::shared_ends(&panels);
        runs.extend(close_ups.into_iter().map(|close_up| Run {
            stack: close_up.panels.draw(&close_up.title(""), &shared),
            waterfall: close_up.waterfall(),
        }));
    }
    runs.retain(|run| !run.stack.is_empty() || !run.waterfall.is_empty());
    if runs.is_empty() {
        return page;
    }
    let (shown, hidden) = runs.split_at(runs.len().min(SHOWN));
    let all = |page: Report, runs: &[Run]| {
        runs.iter().fold(page, |page, run| {
            page.chart(&run.stack).chart(&run.waterfall)
        })
    };
    let which = match data.results.repeats {
        1 => String::new(),
        _ => format!(
            "A typical run of each variant: the repeat whose {} is nearest to the median, with its number in runs.csv. ",
            Quantity::of(data.main_metric()).name
        ),
    };
    let page = page.section("Single runs over time").text(&format!(
        "{which}At one point, the variants share an axis unless it would flatten the lines of one of them; an axis of \
         its own is marked. Vertical lines mark losses and actions of a bundle's engine; queues that stay almost empty are \
         left out."
    ));
    let page = all(page, shown);
    match hidden.len() {
        0 => page,
        more => page.details(&format!("{more} more runs"), |page| all(page, hidden)),
    }
}

/// A run that is shown over time.
struct CloseUp<'d> {
    /// Its variant and its point.
    name: String,
    /// Its number and its result, if there are several runs to choose from.
    which: String,
    run: &'d Record,
    watched: &'d Watched,
    panels: Panels,
}

impl<'d> CloseUp<'d> {
    /// The most typical of the runs with time series.
    fn of(data: &'d ReportData, cell: Cell) -> Option<Self> {
        let Cell { point, variant } = cell;
        let metric = data.main_metric();
        let summary = data.cell(point, variant);
        let median = summary.and_then(|cell| cell.metrics.get(metric)?.median);
        let runs = data.runs(point, variant).iter();
        let run = close_up::typical(runs.filter(|run| run.series.is_some()), metric, median)?;
        let watched = run.series.as_ref()?;
        let quantity = Quantity::of(metric);
        let which = match (data.results.repeats, run.metrics.get(metric).zip(median)) {
            (1, _) => String::new(),
            (_, None) => format!(": repeat {}", run.repeat),
            (_, Some((value, median))) => format!(
                ": repeat {}, {} {} (median {})",
                run.repeat,
                quantity.name,
                quantity.text(*value),
                quantity.text(median)
            ),
        };
        let (_, name) = data.variants().nth(variant)?;
        Some(Self {
            name: data.points.at(name, point),
            which,
            run,
            watched,
            panels: Panels::of(watched),
        })
    }

    fn title(&self, what: &str) -> String {
        format!("{}{what}{}", self.name, self.which)
    }

    /// A waterfall of the objects of a page.
    fn waterfall(&self) -> Waterfall {
        let mut waterfall = Waterfall::new(self.title(", object by object"));
        if self.watched.objects.is_empty() {
            return waterfall;
        }
        for object in &self.watched.objects {
            waterfall = waterfall.fetch(Fetch {
                name: object.name.clone(),
                discovered_s: object.discovered_s,
                requested_s: object.requested_s,
                connected_s: object.connected_s,
                first_byte_s: object.first_byte_s,
                finished_s: object.finished_s,
            });
        }
        for (metric, moment) in [("first_render_s", "rendered"), ("page_load_s", "loaded")] {
            if let Some(&at) = self.run.metrics.get(metric) {
                waterfall = waterfall.event(moment, at);
            }
        }
        waterfall
    }
}

/// The charts of a run.
struct Run {
    stack: Stack,
    /// Empty unless a page was loaded.
    waterfall: Waterfall,
}
