//! Generated guests, taken and refused by real libvirts, held to what the linter says of them.
#![allow(clippy::print_stdout, reason = "the test shows its figures")]

mod element;
mod guest;
mod moves;

use guest::{Dice, guest};
use moves::MOVES;
use vmdisk_tests::libvirts;

fn generated(count: usize, seed: u64) -> Vec<(String, Vec<&'static str>)> {
    (0..count)
        .map(|number| {
            let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
            let mut made = guest(number, &mut dice);
            let mut names = Vec::new();
            for _ in 0..[0, 1, 1, 1, 1, 2, 2, 3][dice.below(8)] {
                let chosen = &MOVES[dice.below(MOVES.len())];
                (chosen.make)(&mut made, &mut dice);
                names.push(chosen.name);
            }
            (made.write(), names)
        })
        .collect()
}

#[test]
fn survey() {
    let guests = generated(3000, 1);
    for libvirt in libvirts("survey") {
        let begin = std::time::Instant::now();
        let verdicts = libvirt.verdicts(guests.iter().map(|(xml, _)| xml.as_str()));
        println!("libvirt {} QEMU {}: {:?}", libvirt.version, libvirt.qemu, begin.elapsed());
        for ((xml, names), verdict) in guests.iter().zip(verdicts) {
            println!("{verdict:?}\t{}\t{}", names.join(", "), if names.is_empty() && verdict.refusal().is_some() { xml } else { "" });
        }
    }
}
