//! ledger: see the map in lib.rs.
