//! Workloads: background traffic and pages.

pub mod background;
pub mod page;
