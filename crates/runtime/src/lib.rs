//! The living system.
