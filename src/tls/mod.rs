//! tls: see the map in lib.rs.
