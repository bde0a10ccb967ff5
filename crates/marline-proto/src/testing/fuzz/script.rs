//! Inputs that are sequences of steps.

/// The steps of an input: a byte for the action, one for a number, one for a length, and as many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a>(&'a [u8]);

/// One step. The target defines the meaning of its fields.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Action.
    pub action: u8,
    /// Stream, member or duration.
    pub number: u8,
    /// Length, which may exceed that of `bytes` in the last step.
    pub len: u8,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Script<'a> {
    /// The steps of `input`; up to two trailing bytes that do not form a step are ignored.
    pub const fn new(input: &'a [u8]) -> Self {
        Self(input)
    }
}

impl<'a> Iterator for Script<'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        let [action, number, len, rest @ ..] = self.0 else {
            return None;
        };
        let (bytes, rest) = rest.split_at(rest.len().min((*len).into()));
        self.0 = rest;
        Some(Step {
            action: *action,
            number: *number,
            len: *len,
            bytes,
        })
    }
}

impl Step<'_> {
    /// The first bytes as an integer, little endian; missing ones are 0.
    pub fn value(&self) -> u64 {
        let first = self.bytes.iter().take(8).enumerate();
        first.fold(0, |value, (place, byte)| {
            value | u64::from(*byte) << (8 * place)
        })
    }
}
