//! Values as cells of tables.

use super::Value;

/// A value as the text of a cell.
pub(super) fn cell(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Whether two values have equal cells.
pub(super) fn equal(a: &Value, b: &Value) -> bool {
    same(&cell(a), &cell(b))
}

/// Whether two cells are equal as text, or as numbers.
pub(super) fn same(cell: &str, want: &str) -> bool {
    cell == want || matches!((cell.parse::<f64>(), want.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}
