//! cli: see the map in lib.rs.
