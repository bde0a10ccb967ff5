//! The phases alone, and with a path whose controller obeys them.
