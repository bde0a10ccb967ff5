//! What every controller must keep, whatever happens to it.
