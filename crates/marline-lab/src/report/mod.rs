//! From results to a page.
