//! The runs behind a page: how each is repeated, and how long it took.

use std::collections::BTreeMap;

use super::excerpt::Excerpt;
use super::table::line;

/// A table of the runs in `excerpts`, by ID.
pub(crate) fn table(excerpts: &BTreeMap<&str, &Excerpt>) -> String {
    let mut text = line(["command", "seed", "backend", "took", "build", "digest"].into_iter());
    text += &line(["---"; 6].into_iter());
    for (id, excerpt) in excerpts {
        let not_kept = || "not kept".to_owned();
        let cells = [
            format!("`marline lab run {id} --repeats {}`", excerpt.repeats),
            excerpt.seed.to_string(),
            excerpt.backend.clone(),
            excerpt.wall_s.map_or_else(not_kept, span),
            excerpt.build().unwrap_or_else(not_kept),
            format!("`{}`", &excerpt.digest[..12.min(excerpt.digest.len())]),
        ];
        text += &line(cells.iter().map(String::as_str));
    }
    text
}

fn span(seconds: f64) -> String {
    match seconds {
        ..90.0 => format!("{seconds} s"),
        _ => format!("{:.0} min", seconds / 60.0),
    }
}
