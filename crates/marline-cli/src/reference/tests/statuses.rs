//! The exit statuses of `marline get`.

use super::*;
use crate::get::curl::REASONS;

#[test]
fn the_exit_statuses_of_get_are_current() {
    let mut rows = String::new();
    for (status, reason) in REASONS {
        line(&mut rows, &[&status.to_string(), reason]);
    }
    let mut text = String::new();
    line(&mut text, &["status", "reason"]);
    line(&mut text, &["---:", "---"]);
    part_is_current("errors.md", "exit statuses of get", &(text + &rows));
}
