//! The last error of each thread.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Why a call failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The reason, as text.
    pub fn reason(&self) -> &str {
        &self.0
    }
}

/// With its causes.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            let more = error.to_string();
            if !text.contains(&more) {
                text.push_str(": ");
                text.push_str(&more);
            }
            cause = error.source();
        }
        Self(text)
    }
}

/// The value of a successful call, or `failed` after the reason is kept for this thread.
pub(crate) fn or<T>(failed: T, result: Result<T, Failure>) -> T {
    result.unwrap_or_else(|Failure(text)| {
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        LAST.set(text);
        failed
    })
}

/// A new object for the caller, or null.
pub(crate) fn or_null<T>(result: Result<T, Failure>) -> *mut T {
    or(
        std::ptr::null_mut(),
        result.map(|value| Box::into_raw(Box::new(value))),
    )
}

/// A reference to what `pointer` points to.
///
/// # Safety
/// It is null, or points to a `T` for as long as the reference is used.
pub(crate) unsafe fn at<'a, T>(pointer: *const T, name: &str) -> Result<&'a T, Failure> {
    // SAFETY: as for this function.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::new(format!("{name} is NULL")))
}

/// As [`at`], to change it.
///
/// # Safety
/// As for [`at`], and nothing else refers to it.
pub(crate) unsafe fn at_mut<'a, T>(pointer: *mut T, name: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: as for this function.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::new(format!("{name} is NULL")))
}

/// The string at `pointer`.
///
/// # Safety
/// It is null, or points to a string that ends with a zero byte, for as long as the result is used.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, name: &str) -> Result<&'a str, Failure> {
    if pointer.is_null() {
        return Err(Failure::new(format!("{name} is NULL")));
    }
    // SAFETY: it is not null; the rest is as for this function.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str()
        .map_err(|_| Failure::new(format!("{name} is not UTF-8")))
}

/// `length` bytes at `pointer`, which may be null if there are none.
///
/// # Safety
/// There are as many, for as long as the result is used.
pub(crate) unsafe fn bytes<'a>(
    pointer: *const u8,
    length: usize,
    name: &str,
) -> Result<&'a [u8], Failure> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(Failure::new(format!("{name} is NULL"))),
        // SAFETY: it is not null; the rest is as for this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, length) }),
    }
}

/// A buffer of `length` bytes at `pointer`, which may be null if there are none.
///
/// # Safety
/// As for [`bytes()`], and nothing else refers to it. The bytes are initialised.
pub(crate) unsafe fn buffer<'a>(
    pointer: *mut u8,
    length: usize,
    name: &str,
) -> Result<&'a mut [u8], Failure> {
    match (pointer.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(Failure::new(format!("{name} is NULL"))),
        // SAFETY: it is not null; the rest is as for this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(pointer, length) }),
    }
}

/// The reason why the last call of this thread that failed did so. It is valid until another fails.
#[unsafe(no_mangle)]
pub extern "C" fn marline_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// The version of the library, as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn marline_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}
