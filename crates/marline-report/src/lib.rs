//! Summaries and HTML reports of qlog files and measurements.
//!
//! - [`input`] opens files;
//! - [`qlog`] reads qlog files event by event;
//! - [`qvis`] converts them for a viewer of older versions;
//! - [`summary`] computes statistics of connections;
//! - [`timeline`] collects time series;
//! - [`chart`] draws charts as SVG;
//! - [`html`] writes self-contained pages with text, tables and charts;
//! - [`terminal`] escapes text for a terminal;
//! - [`units`] formats numbers for human readers.

pub mod chart;
pub mod html;
pub mod input;
mod ordered;
pub mod qlog;
pub mod qvis;
pub mod summary;
pub mod terminal;
pub mod timeline;
pub mod units;

pub use html::Report;
pub use summary::Summary;
pub use timeline::Timeline;
