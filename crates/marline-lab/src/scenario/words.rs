//! Values as tables have them.

use super::Value;

/// A value as a table has it.
pub(super) fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether a table would take both for the same.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    same(&words(a), &words(b))
}

/// Equal as text, or as numbers.
pub(super) fn same(cell: &str, want: &str) -> bool {
    cell == want || matches!((cell.parse::<f64>(), want.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}
