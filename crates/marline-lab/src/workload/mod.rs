//! What is transferred: objects, streams, pages, background.

pub mod page;
