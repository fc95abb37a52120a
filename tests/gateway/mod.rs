//! `postern gateway`, from outside.

mod explicit;
