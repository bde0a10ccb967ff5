//! What is transferred: objects, streams, pages, background.

pub mod background;
pub mod page;
