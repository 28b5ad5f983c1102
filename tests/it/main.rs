//! Whole behaviour, through the `rampdeck` binary, on a real PostgreSQL.

mod attribution;
mod calibrate;
mod console;
mod contract;
mod data;
mod driving;
mod faults;
mod headless;
mod lab_gate;
mod loss;
mod null_endpoint;
mod own_database;
mod plans;
mod programs;
mod rooms;
mod server;
mod support;
mod terminal;
