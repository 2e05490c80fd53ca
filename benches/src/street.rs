//! Streets for `examples/plate-detect`, drawn from a seed: a car with a licence plate among things that look a little like one; and how a
//! reply is judged.
//!
//! Behind the car are houses with windows and a shop's sign, beside it a road sign with words on it, before it a zebra crossing or a line on
//! the road; on it are lamps, a grille and perhaps a sticker. Then comes what a camera does: it is out of focus, too dark or too light, noisy,
//! and writes a JPEG.

mod canvas;

use ab_glyph::FontVec;
use anyhow::{Context, Result, ensure};
use image::codecs::jpeg::JpegEncoder;
use image::{ImageFormat, RgbImage};

use crate::printed::{self, FONTS};
use crate::random::Random;
use canvas::{Canvas, Colour, Label, Paints};

/// Pixels of a photograph.
const WIDTH: u32 = 640;
const HEIGHT: u32 = 480;
/// Millimetres of a plate, and of an em of what is written on it.
const PLATE: [f32; 2] = [520.0, 112.0];
const PLATE_EM: f32 = 104.0;
/// Pixels of a plate's width.
const PLATE_PIXELS: [f32; 2] = [90.0, 190.0];
/// A box and a plate overlap, if their intersection has so much of their union.
const OVERLAP_MIN: f64 = 0.5;

/// Left, top, right and bottom, in pixels.
pub type Rectangle = [f64; 4];

/// A photograph and where the plate is on it.
#[derive(Debug)]
pub struct Street {
    /// The photograph.
    pub jpeg: Vec<u8>,
    /// The smallest upright rectangle with the whole plate.
    pub plate: Rectangle,
}

/// What is written in, and the fonts for it.
struct Painter {
    random: Random,
    canvas: Canvas,
    mono: FontVec,
    serif: FontVec,
}

/// Draws a street.
///
/// # Errors
///
/// If a font is not installed.
pub fn draw(seed: u64) -> Result<Street> {
    let mut painter = Painter {
        random: Random(seed),
        canvas: Canvas::new(WIDTH as usize, HEIGHT as usize),
        mono: printed::font(0)?,
        serif: printed::font(FONTS.len() - 1)?,
    };
    painter.houses();
    painter.road();
    painter.shop_sign();
    painter.road_sign();
    let plate = painter.car();
    let Painter { mut random, canvas, .. } = painter;
    let photograph = canvas.photograph(&mut random);
    let mut jpeg = Vec::new();
    let quality = 60 + random.below(35) as u8;
    photograph.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, quality)).context("a JPEG")?;
    Ok(Street { jpeg, plate })
}

impl Painter {
    fn between(&mut self, low: f32, high: f32) -> f32 {
        self.random.between(low, high)
    }

    fn colour(&mut self, low: f32, high: f32) -> Colour {
        let grey = self.random.between(low, high);
        std::array::from_fn(|_| (grey + self.random.between(-25.0, 25.0)).clamp(0.0, 255.0))
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len() as u64) as usize]
    }

    fn letters(&mut self, count: u64, alphabet: &[u8]) -> String {
        (0..count).map(|_| char::from(self.pick(alphabet))).collect()
    }

    /// Walls with windows.
    fn houses(&mut self) {
        let sky = self.colour(150.0, 230.0);
        self.canvas.rectangle(0.0, 0.0, WIDTH as f32, HEIGHT as f32, sky);
        let mut left = -self.between(0.0, 80.0);
        while left < WIDTH as f32 {
            let (width, top) = (self.between(120.0, 260.0), self.between(10.0, 120.0));
            let (wall, pane) = (self.colour(90.0, 210.0), self.colour(30.0, 90.0));
            self.canvas.rectangle(left, top, left + width, 290.0, wall);
            let (across, down) = (self.between(22.0, 40.0), self.between(34.0, 56.0));
            let mut y = top + 14.0;
            while y + down < 270.0 {
                let mut x = left + 12.0;
                while x + across < left + width - 8.0 {
                    let frame = wall.map(|value| (value + 45.0).min(255.0));
                    self.canvas.rectangle(x - 2.0, y - 2.0, x + across + 2.0, y + down + 2.0, frame);
                    self.canvas.rectangle(x, y, x + across, y + down, pane);
                    self.canvas.rectangle(x + across / 2.0 - 1.0, y, x + across / 2.0 + 1.0, y + down, frame);
                    x += across * 1.6;
                }
                y += down * 1.5;
            }
            left += width;
        }
    }

    /// Asphalt, and stripes of one kind or another.
    fn road(&mut self) {
        let asphalt = self.colour(60.0, 120.0);
        self.canvas.rectangle(0.0, 280.0, WIDTH as f32, HEIGHT as f32, asphalt);
        let kerb = asphalt.map(|value| value + 50.0);
        self.canvas.rectangle(0.0, 278.0, WIDTH as f32, 288.0, kerb);
        let paint = self.colour(190.0, 240.0);
        if self.random.below(2) == 0 {
            let (top, pitch) = (self.between(420.0, 450.0), self.between(16.0, 44.0));
            let high = self.between(12.0, 28.0);
            let mut x = self.between(-40.0, 200.0);
            let end = x + self.between(150.0, 500.0);
            while x < end {
                self.canvas.rectangle(x, top, x + pitch * 0.5, top + high, paint);
                x += pitch;
            }
        } else {
            let y = self.between(430.0, 465.0);
            self.canvas.rectangle(0.0, y, WIDTH as f32, y + 5.0, paint);
        }
    }

    /// A name above a shop: on one line, in capitals and small letters with serifs, or in capitals of one colour on another.
    fn shop_sign(&mut self) {
        let (words, em) = (self.random.below(2) + 1, self.between(18.0, 40.0));
        let mut text = String::new();
        for word in 0..words {
            let length = 3 + self.random.below(5);
            let small = self.letters(length, b"aeioubcdfghklmnprstvwz");
            text.push_str(if word == 0 { "" } else { " " });
            text.push_str(&self.letters(1, b"ABCDEFGHKLMNPRSTVW"));
            text.push_str(&small);
        }
        let (ground, ink) = self.pick(&[
            ([235.0, 232.0, 225.0], [30.0, 30.0, 35.0]),
            ([40.0, 60.0, 130.0], [240.0, 240.0, 240.0]),
            ([150.0, 30.0, 30.0], [245.0, 235.0, 200.0]),
            ([225.0, 205.0, 120.0], [60.0, 30.0, 20.0]),
        ]);
        let label = Label::new(&self.serif, &text, em, [em * 0.5, em * 0.3], Paints { ground, ink });
        let (x, y) = (self.between(60.0, 520.0), self.between(60.0, 200.0));
        self.canvas.label(&label, [x, y], 1.0, 0.0);
    }

    /// A board on a post, with some letters and numbers in two rows.
    fn road_sign(&mut self) {
        let (side, y) = (self.pick(&[40.0, 540.0]), self.between(180.0, 240.0));
        let x = side + self.between(0.0, 60.0);
        self.canvas.rectangle(x - 3.0, y, x + 3.0, 330.0, [110.0, 112.0, 115.0]);
        let (ground, ink) = self.pick(&[
            ([240.0, 240.0, 238.0], [20.0, 20.0, 20.0]),
            ([245.0, 200.0, 40.0], [20.0, 20.0, 20.0]),
            ([30.0, 80.0, 170.0], [245.0, 245.0, 245.0]),
        ]);
        for row in 0..2 {
            let length = 2 + self.random.below(3);
            let text = self.letters(length, b"ABEGKLMPRST0123456789");
            let label = Label::new(&self.mono, &text, 22.0, [6.0, 3.0], Paints { ground, ink });
            self.canvas.label(&label, [x, y + 26.0 * row as f32], 1.0, 0.0);
        }
    }

    /// From behind or from before; returns where the plate is.
    fn car(&mut self) -> Rectangle {
        let across = self.between(PLATE_PIXELS[0], PLATE_PIXELS[1]);
        let scale = across / PLATE[0]; // pixels a millimetre
        let half = 900.0 * scale;
        let centre = self.between(half.min(290.0) * 0.8, WIDTH as f32 - half.min(290.0) * 0.8);
        let ground = self.between(360.0, 430.0);
        let (paint, lamp) = (self.colour(20.0, 230.0), self.pick(&[[170.0, 25.0, 25.0], [235.0, 235.0, 220.0]]));
        let dark = paint.map(|value| value * 0.6);
        let mm = |x: f32| x * scale;
        let canvas = &mut self.canvas;
        let body = ground - mm(750.0);
        canvas.rectangle(centre - mm(860.0), ground - mm(200.0), centre - mm(640.0), ground + mm(120.0), [18.0; 3]);
        canvas.rectangle(centre + mm(640.0), ground - mm(200.0), centre + mm(860.0), ground + mm(120.0), [18.0; 3]);
        canvas.trapezoid(centre, [mm(560.0), mm(780.0)], body - mm(600.0), body, paint);
        canvas.trapezoid(centre, [mm(500.0), mm(690.0)], body - mm(540.0), body - mm(40.0), [45.0, 52.0, 60.0]);
        canvas.rectangle(centre - half, body, centre + half, ground, paint);
        canvas.rectangle(centre - half, ground - mm(260.0), centre + half, ground, dark);
        for side in [-1.0, 1.0] {
            let x = centre + side * mm(740.0);
            canvas.rectangle(x - mm(130.0), body + mm(80.0), x + mm(130.0), body + mm(230.0), lamp);
        }
        for bar in 0..7 {
            let y = body + mm(90.0 + 26.0 * bar as f32);
            canvas.rectangle(centre - mm(420.0), y, centre + mm(420.0), y + mm(12.0), [25.0; 3]);
        }
        if self.random.below(3) == 0 {
            let length = 4 + self.random.below(6);
            let words = self.letters(length, b"aeiounrstlmk");
            let paints = Paints { ground: [240.0, 240.0, 235.0], ink: [40.0, 40.0, 120.0] };
            let label = Label::new(&self.serif, &words, 30.0, [8.0, 4.0], paints);
            let x = centre + self.between(-mm(400.0), mm(400.0));
            self.canvas.label(&label, [x, body + mm(30.0)], scale * 2.5, 0.0);
        }
        let plate_centre = [centre + self.between(-mm(60.0), mm(60.0)), ground - mm(self.random.between(150.0, 330.0))];
        self.plate(plate_centre, scale)
    }

    /// Letters, a space, letters and digits, with a border, not quite level.
    fn plate(&mut self, centre: [f32; 2], scale: f32) -> Rectangle {
        let (first, second, digits) = (1 + self.random.below(3), 1 + self.random.below(2), 2 + self.random.below(3));
        let letters = b"ABCDEFGHIKLMNOPRSTUVWXYZ";
        let text =
            [self.letters(first, letters), " ".to_owned(), self.letters(second, letters), self.letters(digits, b"0123456789")];
        let ground = self.pick(&[[242.0, 242.0, 238.0], [240.0, 200.0, 60.0], [225.0, 228.0, 232.0]]);
        let label = Label::framed(&self.mono, &text.concat(), PLATE_EM, PLATE, Paints { ground, ink: [20.0; 3] });
        let angle = self.between(-0.08, 0.08);
        self.canvas.label(&label, centre, scale, angle).map(f64::from)
    }
}

/// How much two rectangles overlap: their intersection over their union.
#[must_use]
pub fn overlap(a: Rectangle, b: Rectangle) -> f64 {
    let area = |r: Rectangle| (r[2] - r[0]).max(0.0) * (r[3] - r[1]).max(0.0);
    let shared = area([a[0].max(b[0]), a[1].max(b[1]), a[2].min(b[2]), a[3].min(b[3])]);
    shared / (area(a) + area(b) - shared).max(f64::MIN_POSITIVE)
}

/// The box that was drawn: what is round the pixels that are green in the reply and were not before. None without a box.
///
/// # Errors
///
/// If the reply is no JPEG of the request's size, or shows another picture.
pub fn found(request: &[u8], reply: &[u8]) -> Result<Option<Rectangle>> {
    let (before, after) = (decode(request).context("the input")?, decode(reply).context("the reply")?);
    ensure!(before.dimensions() == after.dimensions(), "it has {:?} pixels, not {:?}", after.dimensions(), before.dimensions());
    let is_green = |[red, green, blue]: [u8; 3]| green > 170 && red < 110 && blue < 110;
    let mut bounds: Option<[u32; 4]> = None;
    let (mut changed, mut boxed) = (0_u64, 0_u64);
    for (x, y, pixel) in after.enumerate_pixels() {
        let was = before.get_pixel(x, y).0;
        if is_green(pixel.0) && !is_green(was) {
            let [left, top, right, bottom] = bounds.unwrap_or([x, y, x + 1, y + 1]);
            bounds = Some([left.min(x), top.min(y), right.max(x + 1), bottom.max(y + 1)]);
            boxed += 1;
        } else {
            changed += u64::from(pixel.0.iter().zip(was).any(|(a, b)| a.abs_diff(b) > 60));
        }
    }
    // JPEG blurs colours beside the lines of the box.
    ensure!(changed <= 4 * boxed, "{changed} pixels outside of the box have changed");
    Ok(bounds.map(|bounds| bounds.map(f64::from)))
}

/// Judges a reply.
///
/// # Errors
///
/// If it has no box, or not where the plate is.
pub fn judge(plate: Rectangle, request: &[u8], reply: &[u8]) -> Result<Vec<String>> {
    let found = found(request, reply)?.context("it has no box")?;
    let share = overlap(plate, found);
    ensure!(share >= OVERLAP_MIN, "the box is at {found:?}, the plate at {plate:?}: an overlap of {share:.2}");
    Ok(vec![format!("the box is at {found:?}; its overlap with the plate is {share:.2}")])
}

/// A rectangle as it is written down: four numbers with blanks between them.
///
/// # Errors
///
/// If there are not four numbers.
pub fn rectangle(text: &str) -> Result<Rectangle> {
    let numbers: Vec<f64> = text.split_whitespace().map(str::parse).collect::<Result<_, _>>().context("no numbers")?;
    numbers.try_into().ok().context("a rectangle has four numbers")
}

fn decode(bytes: &[u8]) -> Result<RgbImage> {
    let decoded = image::load_from_memory_with_format(bytes, ImageFormat::Jpeg).context("it is no JPEG")?;
    Ok(decoded.into_rgb8())
}

#[cfg(test)]
mod tests {
    use image::Rgb;

    use super::*;

    fn encode(photograph: &RgbImage) -> Vec<u8> {
        let mut jpeg = Vec::new();
        photograph.write_with_encoder(JpegEncoder::new_with_quality(&mut jpeg, 85)).unwrap();
        jpeg
    }

    fn framed(jpeg: &[u8], frame: [u32; 4]) -> Vec<u8> {
        let mut photograph = decode(jpeg).unwrap();
        let [left, top, right, bottom] = frame;
        for y in top..bottom {
            for x in left..right {
                if x < left + 3 || x >= right - 3 || y < top + 3 || y >= bottom - 3 {
                    photograph.put_pixel(x, y, Rgb([0, 255, 0]));
                }
            }
        }
        encode(&photograph)
    }

    #[test]
    fn a_box_is_right_only_where_the_plate_is() {
        let Street { jpeg, plate } = draw(5).unwrap();
        let around = plate.map(|number| number.round() as u32);
        judge(plate, &jpeg, &framed(&jpeg, around)).unwrap();
        let beside = [around[0] + 60, around[1], around[2] + 60, around[3]];
        assert!(judge(plate, &jpeg, &framed(&jpeg, beside)).is_err());
        assert!(judge(plate, &jpeg, &jpeg).unwrap_err().to_string().contains("no box"));
        assert!(judge(plate, &jpeg, b"").is_err());
        let other = draw(6).unwrap().jpeg;
        assert!(judge(plate, &jpeg, &framed(&other, around)).is_err());
    }

    #[test]
    fn overlaps_are_intersections_over_unions() {
        let unit = [0.0, 0.0, 2.0, 2.0];
        assert_eq!(overlap(unit, unit), 1.0);
        assert_eq!(overlap(unit, [1.0, 0.0, 3.0, 2.0]), 1.0 / 3.0);
        assert_eq!(overlap(unit, [2.0, 2.0, 3.0, 3.0]), 0.0);
        assert_eq!(rectangle("0 0 2.0 2\n").unwrap(), unit);
        assert!(rectangle("0 0 2").is_err());
    }
}
