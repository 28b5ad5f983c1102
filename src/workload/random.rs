//! Numbers that look random and are a function of their inputs alone.

use rand_pcg::Pcg64Mcg;

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64 bits that leaves no bit where it was (the finaliser of `SplitMix64`).
pub(super) const fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number of item `index` in the stream named `stream` of a seed.
pub(super) const fn number(seed: u64, stream: u64, index: u64) -> u64 {
    mix(mix(seed ^ stream.wrapping_mul(GOLDEN)).wrapping_add(index.wrapping_mul(GOLDEN)))
}

/// The generator of one arrival: a function of seed and arrival, whatever was drawn before.
pub(super) fn generator(seed: u64, arrival: u64) -> Pcg64Mcg {
    let high = number(seed, 1, arrival);
    let low = number(seed, 2, arrival);
    Pcg64Mcg::new((u128::from(high) << 64) | u128::from(low))
}

/// A bijection of `0..2^bits` onto itself that looks random: ids taken through it in order neither
/// rise monotonically, which would make one hot range of a distributed key space, nor collide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    mask: u64,
    shift: u32,
    keys: [u64; 3],
}

impl Permutation {
    /// `size` is a power of two.
    pub(super) const fn new(size: u64, seed: u64) -> Self {
        let bits = size.trailing_zeros();
        let keys = [number(seed, 3, 0), number(seed, 3, 1), number(seed, 3, 2)];
        // At least 1: shifting by 0 would make `x ^ x`, which is no bijection.
        let shift = if bits < 2 { 1 } else { bits / 2 };
        Self { mask: size - 1, shift, keys }
    }

    /// The image of `index` modulo the size. Each step (add, multiply by an odd number, xor with
    /// the own high bits) can be undone within the mask, so the whole is a bijection.
    pub(super) const fn apply(&self, index: u64) -> u64 {
        let mut x = index & self.mask;
        let mut round = 0;
        while round < self.keys.len() {
            let key = self.keys[round];
            x = x.wrapping_add(key).wrapping_mul(key | 1) & self.mask;
            x ^= x >> self.shift;
            round += 1;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    #[test]
    fn a_permutation_hits_every_id_once_whatever_its_size_and_seed() {
        for bits in 0..=14_u32 {
            for seed in [0, 1, 42, u64::MAX] {
                let size = 1_u64 << bits;
                let permutation = Permutation::new(size, seed);
                let mut images: Vec<_> = (0..size).map(|i| permutation.apply(i)).collect();
                images.sort_unstable();
                assert!(images.into_iter().eq(0..size), "{bits} bits, seed {seed}");
            }
        }
    }

    #[test]
    fn permuted_ids_do_not_rise() {
        let permutation = Permutation::new(1 << 32, 7);
        let rises = (0..10_000).filter(|i| permutation.apply(i + 1) > permutation.apply(*i));
        let rises = rises.count();
        assert!((4_500..5_500).contains(&rises), "{rises} of 10,000 steps go up");
    }

    #[test]
    fn neighbouring_arrivals_draw_independently() {
        let draws: Vec<u32> = (0..10_000).map(|a| generator(1, a).random_range(0..100)).collect();
        let low = draws.iter().filter(|d| **d < 40).count();
        assert!((3_700..4_300).contains(&low), "{low} of 10,000 below 40");
        let twins = draws.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!((50..160).contains(&twins), "{twins} of 10,000 pairs are equal");
        assert_eq!(draws[9], generator(1, 9).random_range(0..100));
        assert_ne!(generator(1, 0).random::<u64>(), generator(2, 0).random::<u64>());
    }
}
