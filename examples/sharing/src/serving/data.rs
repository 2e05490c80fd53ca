//! What the setup writes: inputs, models and settings, each made of its name and number alone.

use crate::random::Random;
use crate::world::{Error, json};

use super::orders::{Account, Cart, Limits, Order, Price, Share, Stock, User, ordered};
use super::picture::Picture;
use super::{cnn, lr, rnn, train, video};

pub(super) const ALBUMS: u32 = 16;
const USERS: u32 = 64;
const PRODUCTS: u32 = 32;
const GRADES: u32 = 4;
const CURRENCIES: u32 = 8;
const METHODS: u32 = 4;
const LIMITS: Limits = Limits { count_max: 5, cents_max: 100_000 };

const FRAME_WIDTH: usize = 64;
const FRAME_HEIGHT: usize = 48;

/// Words of which texts are made, those that say nothing first.
const STOPWORDS: [&str; 12] = ["the", "a", "of", "and", "to", "it", "is", "was", "in", "this", "that", "with"];
const WORDS: [&str; 24] = [
    "good",
    "bad",
    "taste",
    "price",
    "coffee",
    "tea",
    "box",
    "again",
    "never",
    "always",
    "fresh",
    "stale",
    "sweet",
    "bitter",
    "friend",
    "family",
    "order",
    "late",
    "quick",
    "small",
    "large",
    "flavour",
    "recommend",
    "return",
];

/// The inputs from one number up to another; with the first also what all share.
pub(super) fn entries(from: u32, to: u32) -> impl Iterator<Item = (String, Vec<u8>)> {
    let common = if from == 0 { common() } else { Vec::new() };
    common.into_iter().chain((from..to).flat_map(input))
}

fn common() -> Vec<(String, Vec<u8>)> {
    let mut weights = Random::of("lr/weights", 0);
    let lr_weights = (0..lr::WEIGHTS).flat_map(|_| (weights.between(0, 1_024) as i16 - 512).to_le_bytes()).collect();
    let network = |key: &str, count: usize, limit: i8| (key.to_owned(), Random::of(key, 0).weights(count, limit));
    let mut entries = vec![
        ("lr/weights".to_owned(), lr_weights),
        ("lr/stopwords".to_owned(), STOPWORDS.join("\n").into_bytes()),
        network("cnn/first", cnn::FIRST_WEIGHTS, 100),
        network("cnn/second", cnn::SECOND_WEIGHTS, 60),
        network("cnn/dense", cnn::DENSE_WEIGHTS, 100),
        network("rnn/letters", 2 * rnn::LETTERS * rnn::HIDDEN, 40),
        network("rnn/memory", rnn::HIDDEN * rnn::HIDDEN, 24),
        ("frame".to_owned(), b"32".to_vec()),
        ("smoothing".to_owned(), b"1".to_vec()),
        ("limits".to_owned(), json(&LIMITS)),
    ];
    entries.extend((0..ALBUMS).map(|album| (format!("album/{album}"), (12 + album).to_string().into_bytes())));
    entries.extend((0..USERS).map(|number| (format!("user/{number}"), json(&user(number)))));
    entries
        .extend((0..USERS).map(|number| (format!("account/{number}"), json(&Account { cents: 1_000_000 + u64::from(number) }))));
    entries.extend((0..PRODUCTS).map(|number| (format!("price/{number}"), json(&price(number)))));
    entries.extend((0..PRODUCTS).map(|number| (format!("stock/{number}"), json(&stock(number)))));
    entries.extend((0..GRADES).map(|number| (format!("discount/{number}"), json(&discount(number)))));
    let share = |per_mille: u32| json(&Share { per_mille: u64::from(per_mille) });
    entries.extend((0..CURRENCIES).map(|number| (format!("rate/{number}"), share(800 + 50 * number))));
    entries.extend((0..METHODS).map(|number| (format!("fee/{number}"), share(5 * number))));
    entries
}

fn user(number: u32) -> User {
    let mut random = Random::of("user", number);
    User { grade: random.below(GRADES), currency: random.below(CURRENCIES), method: random.below(METHODS) }
}

fn price(product: u32) -> Price {
    Price { cents: u64::from(Random::of("price", product).between(99, 9_999)) }
}

fn stock(product: u32) -> Stock {
    Stock { count: u64::from(Random::of("stock", product).between(100, 1_000)) }
}

fn discount(grade: u32) -> Share {
    Share { per_mille: u64::from(25 * grade) }
}

/// What one number's requests read.
fn input(number: u32) -> Vec<(String, Vec<u8>)> {
    let mut entries = vec![
        (format!("text/{number}"), text(number)),
        (format!("picture/{number}"), pixels(&mut Random::of("picture", number), cnn::SIDE, cnn::SIDE, cnn::CHANNELS)),
        (format!("language/{number}"), Random::of("language", number).weights(rnn::LETTERS, 60)),
        (format!("photo/{number}"), photo(number)),
        (format!("tilt/{number}"), Random::of("tilt", number).between(8, 106).to_string().into_bytes()),
    ];
    entries.extend((0..).zip(shards(number)).map(|(part, shard): (u32, _)| (format!("shard/{number}/{part}"), shard)));
    entries.extend((0..).zip(clip(number)).map(|(part, frames): (u32, _)| (format!("clip/{number}/{part}"), frames)));
    entries.push((format!("cart/{number}"), json(&cart(number))));
    // It can be paid before the other function has made it, and as well after that.
    entries.extend(order(number).map(|order| (format!("order/{number}"), json(&order))));
    entries
}

fn cart(number: u32) -> Cart {
    let mut random = Random::of("cart", number);
    let count = random.between(1, LIMITS.count_max as u32);
    Cart { user: random.below(USERS), product: random.below(PRODUCTS), count: u64::from(count) }
}

/// The order that its cart makes.
fn order(number: u32) -> Result<Order, Error> {
    let cart = cart(number);
    ordered(number, cart, price(cart.product), stock(cart.product), discount(user(cart.user).grade), LIMITS)
}

/// A size: of four blobs of five between the first two, of the fifth up to the last.
fn size(random: &mut Random, small: u32, medium: u32, large: u32) -> usize {
    let is_large = random.below(5) == 0;
    if is_large { random.between(medium, large) as usize } else { random.between(small, medium) as usize }
}

fn text(number: u32) -> Vec<u8> {
    let mut random = Random::of("text", number);
    let bytes = size(&mut random, 200, 6_000, 24_000);
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        let words: &[&str] = if random.below(2) == 0 { &STOPWORDS } else { &WORDS };
        text.push_str(words[random.below(words.len() as u32) as usize]);
        text.push_str(if random.below(9) == 0 { ". " } else { " " });
    }
    text.into_bytes()
}

/// A slope with some noise.
fn pixels(random: &mut Random, width: usize, height: usize, channels: usize) -> Vec<u8> {
    let (right, down) = (random.below(4) as usize, random.below(4) as usize);
    let at = |at: usize| (at / channels % width * right + at / channels / width * down + at % channels * 40) as u32;
    (0..width * height * channels).map(|place| ((at(place) + random.below(12)) % 256) as u8).collect()
}

fn photo(number: u32) -> Vec<u8> {
    let mut random = Random::of("photo", number);
    let width = size(&mut random, 24, 60, 128);
    let height = width * 3 / 4;
    let picture = Picture { width, height, channels: 3, pixels: pixels(&mut random, width, height, 3) };
    picture.encode().unwrap_or_default()
}

fn shards(number: u32) -> [Vec<u8>; train::SHARDS] {
    let mut random = Random::of("shard", number);
    let secret: [i32; train::FEATURES] = std::array::from_fn(|_| random.between(0, 200) as i32 - 100);
    let examples = size(&mut random, 60, 320, 700);
    std::array::from_fn(|_| (0..examples).flat_map(|_| example(&mut random, &secret)).collect())
}

/// One whose kind follows from its features, but for some noise.
fn example(random: &mut Random, secret: &[i32; train::FEATURES]) -> Vec<u8> {
    let unit = train::UNIT as u32;
    let features: [i32; train::FEATURES] = std::array::from_fn(|_| random.between(0, 2 * unit) as i32 - unit as i32);
    let sum: i32 = features.iter().zip(secret).map(|(feature, weight)| feature * weight).sum();
    let kind = sum + random.between(0, 40 * unit) as i32 > 20 * unit as i32;
    features.into_iter().chain([i32::from(kind)]).flat_map(|number| (number as i16).to_le_bytes()).collect()
}

fn clip(number: u32) -> [Vec<u8>; video::PARTS] {
    let mut random = Random::of("clip", number);
    let frames = size(&mut random, 1, 2, 4);
    std::array::from_fn(|part| {
        let mut bytes = Vec::new();
        if part == 0 {
            bytes.extend(format!("YUV4MPEG2 W{FRAME_WIDTH} H{FRAME_HEIGHT} F25:1 C420\n").into_bytes());
        }
        for _ in 0..frames {
            bytes.extend_from_slice(b"FRAME\n");
            bytes.extend(pixels(&mut random, FRAME_WIDTH, FRAME_HEIGHT, 1));
            bytes.extend(vec![128; FRAME_WIDTH * FRAME_HEIGHT / 2]);
        }
        bytes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_blobs_are_small_and_none_is_empty() {
        let blobs: Vec<_> = (0..100).flat_map(input).filter(|(key, _)| !key.starts_with("order")).collect();
        let small = blobs.iter().filter(|(_, blob)| blob.len() < 12 << 10).count();
        let share = small as f64 / blobs.len() as f64;
        assert!((0.8..0.95).contains(&share), "{share}");
        assert!(blobs.iter().all(|(_, blob)| (1..256 << 10).contains(&blob.len())));
    }

    #[test]
    fn every_cart_becomes_an_order() {
        (0..500).for_each(|number| assert!(order(number).is_ok_and(|order| order.order == number)));
    }

    #[test]
    fn ranges_are_parts_of_the_whole() {
        let parts: Vec<_> = entries(0, 3).chain(entries(3, 7)).collect();
        assert!(parts.iter().eq(entries(0, 7).collect::<Vec<_>>().iter()));
    }
}
