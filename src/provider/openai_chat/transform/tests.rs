//! Tests of transforms.
