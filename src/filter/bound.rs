//! Ends a body that is longer than its bound.

use bytes::Bytes;

use super::{Refused, Rewrite};
use crate::call::{Denial, DenialForm};

/// Passes every chunk of a body within its bound.
#[derive(Debug, Clone)]
pub struct SizeBound {
    most: usize,
    left: usize,
    denial: fn(usize) -> Denial,
}

impl SizeBound {
    /// The bound of a request that is held whole, in bytes.
    pub fn of_request(most: usize) -> Self {
        Self { most, left: most, denial: too_large_request }
    }

    /// The bound of an answer that is held whole, in bytes.
    pub fn of_answer(most: usize) -> Self {
        Self { most, left: most, denial: too_large_answer }
    }

    /// Counts so many bytes.
    ///
    /// # Errors
    /// Fails if they are more than the bound leaves.
    pub fn take(&mut self, bytes: u64) -> Result<(), Denial> {
        let left = usize::try_from(bytes).ok().and_then(|bytes| self.left.checked_sub(bytes));
        self.left = left.ok_or_else(|| (self.denial)(self.most))?;
        Ok(())
    }
}

fn too_large_request(most: usize) -> Denial {
    let reason = format!("the request is larger than {most} bytes (limits.requestBodyBytes)");
    Denial::builtin("bound", reason).answered(DenialForm::TooLarge)
}

fn too_large_answer(most: usize) -> Denial {
    Denial::builtin("bound", format!("the answer is larger than {most} bytes (limits.decodedBodyBytes)"))
}

impl Rewrite for SizeBound {
    fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.take(chunk.len() as u64).map_err(Refused::Denied)?;
        out.push(chunk);
        Ok(())
    }

    fn finish(&mut self, _: &mut Vec<Bytes>) -> Result<(), Refused> {
        Ok(())
    }

    fn keeps_length(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_passes_up_to_its_bound_and_ends_at_the_first_byte_beyond() {
        for split in [vec![10], vec![9, 1], vec![1; 10], vec![0, 10, 0]] {
            let (mut bound, mut out) = (SizeBound::of_request(10), Vec::new());
            for length in &split {
                assert_eq!(bound.write(vec![b'x'; *length].into(), &mut out), Ok(()), "{split:?}");
            }
            assert_eq!(out.concat(), [b'x'; 10]);
            let Err(Refused::Denied(denial)) = bound.write(Bytes::from_static(b"y"), &mut out) else {
                panic!("an eleventh byte passed");
            };
            assert_eq!(denial.answer, DenialForm::TooLarge);
            assert_eq!(out.concat(), [b'x'; 10]);
        }
    }
}
