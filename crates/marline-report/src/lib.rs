//! From logs to something to look at.
//!
//! - [`qlog`] reads the files that QUIC stacks write, record by record;
//! - [`summary`] tells in numbers what a connection did;
//! - [`timeline`] collects what changes over time;
//! - [`chart`] draws it as SVG;
//! - [`html`] puts text, tables and charts on a page that needs nothing else;
//! - [`units`] writes numbers the way people read them.

pub mod chart;
pub mod html;
pub mod qlog;
pub mod summary;
pub mod timeline;
pub mod units;

pub use html::Report;
pub use summary::Summary;
pub use timeline::Timeline;
