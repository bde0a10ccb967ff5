//! What is transferred: objects, streams, pages, background.
