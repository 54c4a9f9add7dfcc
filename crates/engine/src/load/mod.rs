//! x
#![allow(dead_code)]
mod book;
mod schedule;
