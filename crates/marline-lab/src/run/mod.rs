//! Every run of an experiment: in which order, on how many threads, and what came out.
