//! Loads a web page as a browser does: objects are requested as they are discovered in the content that has arrived,
//! with priorities that determine the order in which the server sends them.
//!
//! A [`Page`] is a tree of objects. [`load()`] processes it: an object is *discovered* when its share of the
//! parent object has arrived and was parsed, *started* when its host has a connection free for it, and *done*
//! when all of it has arrived and was parsed or run. Parsing is a delay by the clock of the client's runtime,
//! so that in virtual time loads repeat to the nanosecond.

mod check;
mod findings;
mod hosts;
mod load;
mod model;
mod options;
mod priority;
mod report;

pub use self::check::PageError;
pub use self::load::load;
pub use self::model::{Discovery, Kind, Page, PageObject};
pub use self::options::LoadOptions;
pub use self::report::{PageObjectReport, PageReport};

#[cfg(test)]
mod tests;
