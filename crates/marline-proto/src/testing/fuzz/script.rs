//! Inputs that are sequences of steps.

/// The steps of an input: a byte for the action, one for a number, one for a length, and as many bytes.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a>(&'a [u8]);

/// One step. What its fields mean is up to the target.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// What to do.
    pub action: u8,
    /// With which stream, member, or for how long.
    pub number: u8,
    /// The length, which may exceed that of `bytes` in the last step.
    pub len: u8,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> Script<'a> {
    /// The steps of `input`; up to two bytes at the end that are no step are ignored.
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
