//! The game's world and its rules, in whole numbers: the same on every machine, and natively as in a sandbox. Nothing here knows a store.
//!
//! The world is a square of regions, each a square of cells with a height. Making a region is noise, and then rain that carries soil
//! downhill, pass by pass. A tick moves the players, and each looks around: what of the land can be seen counts for its score.

/// Regions of the world in each direction.
pub const REGIONS: usize = 16;
/// Cells of a region in each direction.
pub const CELLS: usize = 32;
/// Cells of the world in each direction.
pub const SIDE: i32 = (REGIONS * CELLS) as i32;
/// Bytes of a region: the height of each cell, row by row.
pub const REGION_BYTES: usize = CELLS * CELLS;
/// Bytes of a player: place (x, y) and score, each in 32 bits, little-endian.
pub const PLAYER_BYTES: usize = 12;

/// How far a player sees, in cells.
const VIEW: i32 = 48;
/// Half the rays of one side of the square to which a player looks.
const RAYS: i32 = 45;
/// A player's eyes above the ground.
const EYES: i32 = 2;

/// A number that is as good as random for each place.
fn noise(seed: u64, x: i32, y: i32) -> i32 {
    let mut bits = seed ^ ((u64::from(x as u32) << 32) | u64::from(y as u32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (bits >> 56) as i32
}

/// The sum of noise at several scales, between 0 and 255, times 256.
fn height(seed: u64, x: i32, y: i32) -> i32 {
    let mut sum = 0;
    for octave in 2..6 {
        let scale = 1 << octave;
        let (left, top) = (x.div_euclid(scale), y.div_euclid(scale));
        let (right, down) = (x.rem_euclid(scale), y.rem_euclid(scale));
        let corner = |dx: i32, dy: i32| noise(seed + octave, left + dx, top + dy);
        let upper = corner(0, 0) * (scale - right) + corner(1, 0) * right;
        let lower = corner(0, 1) * (scale - right) + corner(1, 1) * right;
        // Each scale counts twice as much as the next smaller one.
        sum += ((upper * (scale - down) + lower * down) << octave) / (scale * scale);
    }
    sum * 256 / 60
}

/// Makes a region; `passes` of rain say how long that takes.
pub fn region(seed: u64, number: usize, passes: u32) -> Vec<u8> {
    let (left, top) = ((number % REGIONS * CELLS) as i32, (number / REGIONS * CELLS) as i32);
    let mut heights: Vec<i32> =
        (0..REGION_BYTES).map(|cell| height(seed, left + (cell % CELLS) as i32, top + (cell / CELLS) as i32)).collect();
    for _ in 0..passes {
        for cell in 0..REGION_BYTES - CELLS - 1 {
            // A part of the difference flows to the right, another one down.
            let right = (heights[cell] - heights[cell + 1]) >> 7;
            let down = (heights[cell] - heights[cell + CELLS]) >> 7;
            heights[cell] -= right + down;
            heights[cell + 1] += right;
            heights[cell + CELLS] += down;
        }
    }
    heights.into_iter().map(|height| (height >> 8).clamp(0, 255) as u8).collect()
}

/// The heights of all cells, of the regions in their order.
#[derive(Debug)]
pub struct Land(Vec<u8>);

impl Land {
    /// Of regions, one behind the other; none if it is not a world.
    pub fn new(regions: Vec<u8>) -> Option<Land> {
        (regions.len() == REGIONS * REGIONS * REGION_BYTES).then_some(Land(regions))
    }

    fn height(&self, x: i32, y: i32) -> i32 {
        // The world has no edge.
        let (x, y) = (x.rem_euclid(SIDE) as usize, y.rem_euclid(SIDE) as usize);
        let region = y / CELLS * REGIONS + x / CELLS;
        i32::from(self.0[region * REGION_BYTES + y % CELLS * CELLS + x % CELLS])
    }

    /// How many cells can be seen from a place: along rays in all directions, until something higher is in the way.
    fn visible(&self, x: i32, y: i32) -> u32 {
        let eyes = self.height(x, y) + EYES;
        let mut seen = 0;
        for ray in 0..RAYS * 8 {
            let along = ray % (2 * RAYS) - RAYS;
            let (dx, dy) = match ray / (2 * RAYS) {
                0 => (along, -RAYS),
                1 => (RAYS, along),
                2 => (-along, RAYS),
                _ => (-RAYS, -along),
            };
            let mut steepest = i32::MIN;
            for step in 1..=VIEW {
                let slope = (self.height(x + dx * step / RAYS, y + dy * step / RAYS) - eyes) * 1_024 / step;
                if slope >= steepest {
                    steepest = slope;
                    seen += 1;
                }
            }
        }
        seen
    }
}

/// The players at the beginning.
pub fn players(seed: u64, count: usize) -> Vec<u8> {
    let place = |player: usize, axis: i32| (noise(seed, player as i32, axis) * 2) as u32;
    let player = |player: usize| [place(player, -1), place(player, -2), 0].map(u32::to_le_bytes).concat();
    (0..count).flat_map(player).collect()
}

/// One tick: each player moves in the direction of its input (0 to 3; others stay) unless it is too steep, and looks around.
pub fn tick(land: &Land, players: &mut [u8], inputs: &[u8]) {
    let (players, _) = players.as_chunks_mut::<PLAYER_BYTES>();
    for (player, input) in players.iter_mut().zip(inputs) {
        let word = |at: usize| u32::from_le_bytes([player[at], player[at + 1], player[at + 2], player[at + 3]]);
        let (mut x, mut y, score) = (word(0) as i32, word(4) as i32, word(8));
        let (dx, dy) = [(1, 0), (0, 1), (-1, 0), (0, -1)].get(usize::from(*input)).copied().unwrap_or_default();
        if land.height(x + dx, y + dy) - land.height(x, y) < 8 {
            (x, y) = ((x + dx).rem_euclid(SIDE), (y + dy).rem_euclid(SIDE));
        }
        let score = score.wrapping_add(land.visible(x, y));
        *player = [x as u32, y as u32, score].map(u32::to_le_bytes).concat().try_into().expect("three words");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn land(passes: u32) -> Land {
        Land::new((0..REGIONS * REGIONS).flat_map(|number| region(7, number, passes)).collect()).unwrap()
    }

    #[test]
    fn land_has_hills_which_rain_lowers() {
        let spread = |land: &Land| land.0.iter().max().unwrap() - land.0.iter().min().unwrap();
        let (before, after) = (land(0), land(200));
        assert!(spread(&before) > 100, "{}", spread(&before));
        assert_ne!(before.0, after.0);
        let roughness = |land: &Land| land.0.windows(2).map(|pair| u64::from(pair[0].abs_diff(pair[1]))).sum::<u64>();
        assert!(roughness(&after) < roughness(&before));
    }

    #[test]
    fn players_walk_and_see() {
        let land = land(0);
        let mut first = players(3, 4);
        let begin = first.clone();
        for at in 0..20 {
            tick(&land, &mut first, &[at % 4, 0, 9, 2]);
        }
        assert_eq!(first[2 * PLAYER_BYTES..2 * PLAYER_BYTES + 8], begin[2 * PLAYER_BYTES..2 * PLAYER_BYTES + 8], "one stays");
        assert_ne!(first[PLAYER_BYTES..PLAYER_BYTES + 8], begin[PLAYER_BYTES..PLAYER_BYTES + 8], "one walks");
        for player in first.as_chunks::<PLAYER_BYTES>().0 {
            assert!(u32::from_le_bytes(player[8..].try_into().unwrap()) > 20 * 360, "each sees at least its rays' first cells");
        }
    }

    #[test]
    fn what_is_no_world_is_none() {
        assert!(Land::new(vec![0; 100]).is_none());
    }
}
