//! Virtual time: a runtime whose clock moves when nothing else can happen.
