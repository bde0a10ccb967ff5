//! Real time: network namespaces joined by the same links.
