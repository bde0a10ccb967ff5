//! `docs/results.md`: every number that the papers publish, beside ours.
//!
//! The numbers are in the tables of `experiments/published`. An index of each paper, in `experiments/published/index`,
//! says of each column of each table which quantity it is, where ours is in the results, and how the verdict is reached:
//!
//! ```toml
//! [[table]]
//! file = "000_table2_newreno_cubic_completion.csv"
//! place = "Table 2"
//! settings = ["cca", "content_kb"]
//! [[table.number]]
//! column = "completion_median_s"
//! quantity = "median completion time, {cca}, {content_kb} kB"
//! unit = "s"
//! results = "bundle/plain"
//! variant = "{cca}"
//! metric = "completion_s"
//! where = { content_kb = "{content_kb}" }
//! ```
//!
//! `{NAME}` is the row's cell of the column `NAME`. A number without a counterpart has a reason instead, with one of the
//! keys `not_comparable`, `not_reproduced` and `not_run`.

mod choices;
mod flows;
mod index;
mod ours;
mod page;
mod verdict;

pub(crate) use choices::Choices;
pub(crate) use index::{Number, numbers};
pub(crate) use page::text;
