//! Real-world pods, injected.
