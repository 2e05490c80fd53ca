//! What is dark beside its surroundings.

use photograph::Photograph;

/// How far the surroundings of a pixel reach, in pixels each way: characters are narrower.
const REACH: usize = 12;
/// Shares of the surroundings' brightness, in 256ths, below which a pixel may be called dark: more leaves thin strokes whole, less keeps
/// characters apart that are out of focus.
pub(crate) const LEVELS: [u64; 3] = [224, 196, 168];

/// Brightness, a byte a pixel, row by row.
pub(crate) struct Grey {
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) pixels: Vec<u8>,
}

impl Grey {
    /// The luma of a photograph (ITU-R BT.601).
    pub(crate) fn of(photograph: &Photograph) -> Grey {
        let luma = |rgb: &[u8]| ((u32::from(rgb[0]) * 77 + u32::from(rgb[1]) * 150 + u32::from(rgb[2]) * 29) >> 8) as u8;
        let pixels = photograph.pixels.chunks_exact(3).map(luma).collect();
        Grey { width: photograph.width, height: photograph.height, pixels }
    }

    /// The row `y`.
    pub(crate) fn row(&self, y: usize) -> &[u8] {
        &self.pixels[y * self.width..(y + 1) * self.width]
    }
}

/// For each pixel, whether it has less than `level` of its surroundings' brightness.
pub(crate) fn of(grey: &Grey, level: u64) -> Vec<bool> {
    let mut ink = Vec::with_capacity(grey.pixels.len());
    // Sums of columns over the rows that surround the present one.
    let mut columns = vec![0_u32; grey.width];
    for y in 0..grey.height.min(REACH) {
        add(&mut columns, grey.row(y));
    }
    let mut sums = vec![0_u32; grey.width + 1];
    for y in 0..grey.height {
        if y + REACH < grey.height {
            add(&mut columns, grey.row(y + REACH));
        }
        if y > REACH {
            for (column, pixel) in columns.iter_mut().zip(grey.row(y - REACH - 1)) {
                *column -= u32::from(*pixel);
            }
        }
        let mut sum = 0;
        for (to, column) in sums[1..].iter_mut().zip(&columns) {
            sum += column;
            *to = sum;
        }
        let rows = (y + REACH + 1).min(grey.height) - y.saturating_sub(REACH);
        for (x, pixel) in grey.row(y).iter().enumerate() {
            let (left, right) = (x.saturating_sub(REACH), (x + REACH + 1).min(grey.width));
            let around = u64::from(sums[right] - sums[left]);
            ink.push(u64::from(*pixel) * (rows * (right - left)) as u64 * 256 < around * level);
        }
    }
    ink
}

fn add(columns: &mut [u32], row: &[u8]) {
    for (column, pixel) in columns.iter_mut().zip(row) {
        *column += u32::from(*pixel);
    }
}
