//! config: see the map in lib.rs.
