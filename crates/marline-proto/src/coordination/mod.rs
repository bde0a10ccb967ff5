//! Decisions across connections: what one has learnt about the path, those beside it use.
//!
//! An engine sees numbers and answers with numbers; it knows no connection. The endpoint asks it and has
//! its connections obey.

pub mod bundle;
pub mod careful_resume;
pub mod history;
