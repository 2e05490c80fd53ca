//! The group `applications`, execution: the paper's programs against native code of the same source.

use anyhow::Result;

use super::Bench;
use crate::applications;
use crate::example::{Example, GPS_EKF, IMAGE_CLASSIFY, IMAGE_RESIZE, OCR, PLATE_DETECT};

fn ratio(bench: &Bench, example: &'static Example) -> Result<f64> {
    applications::ratio(example, bench.folder.path())
}

/// The Kalman filter.
pub(super) fn gps_ekf(bench: &mut Bench) -> Result<f64> {
    ratio(bench, &GPS_EKF)
}

/// Reading a page.
pub(super) fn ocr(bench: &mut Bench) -> Result<f64> {
    ratio(bench, &OCR)
}

/// Telling what is on a picture.
pub(super) fn image_classify(bench: &mut Bench) -> Result<f64> {
    ratio(bench, &IMAGE_CLASSIFY)
}

/// Halving a photograph.
pub(super) fn image_resize(bench: &mut Bench) -> Result<f64> {
    ratio(bench, &IMAGE_RESIZE)
}

/// Finding a licence plate.
pub(super) fn plate_detect(bench: &mut Bench) -> Result<f64> {
    ratio(bench, &PLATE_DETECT)
}
