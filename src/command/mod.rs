//! command: see the map in lib.rs.
