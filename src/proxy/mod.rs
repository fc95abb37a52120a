//! proxy: see the map in lib.rs.
