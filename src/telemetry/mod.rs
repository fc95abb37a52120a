//! telemetry: see the map in lib.rs.
