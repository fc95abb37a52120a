//! admin: see the map in lib.rs.
