//! Schedulers: run queues, timers, parking.

pub mod wheel;
