//! Black-box tests.
mod policies;
