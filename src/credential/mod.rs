//! credential: see the map in lib.rs.
