//! A command that is made of large libraries: it parses Rust, searches by regular expressions, and encodes and decodes pictures and JSON.

use std::fmt::Write;
use std::io::{Cursor, Read};

use image::{DynamicImage, ImageFormat, RgbImage};

const FORMATS: [ImageFormat; 7] = [
    ImageFormat::Bmp,
    ImageFormat::Gif,
    ImageFormat::Png,
    ImageFormat::Qoi,
    ImageFormat::Tga,
    ImageFormat::Tiff,
    ImageFormat::WebP,
];

/// FNV-1a, 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Sizes and contents of a picture in all formats, there and back.
fn pictures() -> String {
    let picture = RgbImage::from_fn(97, 61, |x, y| image::Rgb([(x * y) as u8, (x * 3 + y) as u8, (y * 5) as u8 ^ x as u8]));
    let picture = DynamicImage::from(picture).resize_exact(64, 48, image::imageops::FilterType::Triangle);
    let mut text = String::new();
    for format in FORMATS {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).expect("encodes");
        let decoded = image::load_from_memory_with_format(file.get_ref(), format).expect("decodes");
        writeln!(text, "{format:?} {} {:x}", file.get_ref().len(), hash(decoded.to_rgb8().as_raw())).expect("a string");
    }
    text
}

fn main() {
    let mut source = String::new();
    std::io::stdin().read_to_string(&mut source).expect("reads");
    let file = syn::parse_file(&source).expect("Rust");
    println!("{} items, {:x}", file.items.len(), hash(format!("{file:?}").as_bytes()));
    let words = regex::Regex::new(r"(?x) \b ( [[:upper:]]\w{3,} | fn \s+ (?P<name>\w+) ) \b").expect("a regular expression");
    let found: Vec<_> = words.find_iter(&source).map(|word| word.as_str()).collect();
    let json = serde_json::json!({ "words": found, "lines": source.lines().count() });
    let again: serde_json::Value = serde_json::from_str(&json.to_string()).expect("JSON");
    println!("{again}\n{}\n{}", again == json, pictures());
}
