//! The `postern` executable.

fn main() {}
