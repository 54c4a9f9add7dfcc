//! A benchmark of your own for `iolens ab --loop`. rustc -O bench.rs; ./bench 100
use std::{fs::File, os::unix::fs::FileExt};

fn work(file: &File, amount: u64) { // what you want to measure
    let mut block = [0; 512];
    (0..amount).for_each(|i| file.read_exact_at(&mut block, 512 * (i % 8)).unwrap());
    std::hint::black_box(block);
}

fn main() {
    let amount = std::env::args().nth(1).map_or(100, |amount| amount.parse().unwrap());
    let file = File::open("/proc/self/exe").unwrap();
    println!("ready");
    for line in std::io::stdin().lines() {
        (0..line.unwrap().parse().unwrap()).for_each(|_: u64| work(&file, amount));
        println!("ok");
    }
}
