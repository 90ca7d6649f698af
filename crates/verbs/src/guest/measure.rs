//! Guests: whole systems of a given kernel that run under an emulator whose clock counts instructions.
//!
//! The host finds, unpacks and packs what a guest consists of (nothing is installed), boots it once, saves it when its stack
//! is ready, and restores it for each measurement. This program is also the guest's first process, the [`agent`].

pub mod agent;
mod boot_files;
pub mod cache;
pub mod cpio;
mod debian;
pub mod kernel;
mod machine;
mod modules;
pub mod programs;
mod protocol;
pub mod run;
mod snapshot;
pub mod stack;
pub mod tool;

pub use run::Guests;
