//! wire: see the map in lib.rs.
