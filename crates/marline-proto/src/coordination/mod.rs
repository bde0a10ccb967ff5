//! Decisions that involve several connections or paths, at the same time ([`bundle`]) or one after another
//! ([`history`], [`careful_resume`]).
//!
//! The modules see numbers and return decisions; they know no connection. Endpoint and connections pass
//! on the numbers and apply the decisions.

pub mod bundle;
pub mod careful_resume;
pub mod history;
