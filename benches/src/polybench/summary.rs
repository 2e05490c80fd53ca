//! Medians of times, ratios of medians, means of ratios, and the tables that show them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::machine;
use super::plan::Plan;
use super::samples::{self, Samples, Time};
use super::variant::Variant;
use crate::spread::Spread;

/// A kernel is as fast as native if it takes at most this many times as long.
pub const WITHIN: f64 = 1.1;

/// A kernel's medians, in seconds, in the order of the summary's variants.
#[derive(Debug, Clone)]
struct Row {
    kernel: String,
    medians: Vec<f64>,
    /// How far the runs of each variant are apart, as a share.
    noises: Vec<f64>,
    runs: usize,
}

impl Row {
    /// Of the times that `of` knows of each variant.
    fn new<'a>(kernel: &str, variants: &[Variant], of: impl Fn(Variant) -> &'a [f64]) -> Result<Row> {
        let (mut medians, mut noises) = (Vec::new(), Vec::new());
        for &variant in variants {
            let times = of(variant);
            medians.push(median(times).with_context(|| format!("{kernel} as {variant} was not measured"))?);
            noises.push(Spread::of(times.iter().copied()).map_or(0.0, Spread::noise));
        }
        Ok(Row { kernel: kernel.to_owned(), medians, noises, runs: of(Variant::Native).len() })
    }
}

/// What a run came to.
#[derive(Debug, Clone)]
pub struct Summary {
    /// What was measured; the first is [`Variant::Native`].
    pub variants: Vec<Variant>,
    dataset: String,
    conditions: String,
    rows: Vec<Row>,
}

/// The ratios of one variant to another over all kernels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratios {
    /// Their arithmetic mean.
    pub arithmetic: f64,
    /// Their geometric mean.
    pub geometric: f64,
    /// The largest.
    pub worst: f64,
    /// How many are at most [`WITHIN`].
    pub within: usize,
}

impl Ratios {
    fn of(ratios: &[f64]) -> Ratios {
        let count = ratios.len() as f64;
        Ratios {
            arithmetic: ratios.iter().sum::<f64>() / count,
            geometric: (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / count).exp(),
            worst: ratios.iter().copied().fold(f64::NAN, f64::max),
            within: ratios.iter().filter(|ratio| **ratio <= WITHIN).count(),
        }
    }

    /// In the order of the fields.
    fn printed(&self) -> [String; 4] {
        [
            format!("{:.3}", self.arithmetic),
            format!("{:.3}", self.geometric),
            format!("{:.2}", self.worst),
            self.within.to_string(),
        ]
    }
}

impl Summary {
    /// Of the samples of a whole plan.
    ///
    /// # Errors
    ///
    /// If a program has none.
    pub fn new(plan: &Plan, samples: &Samples) -> Result<Summary> {
        let row = |kernel: &String| Row::new(kernel, &plan.variants, |variant| samples.of(kernel, &variant.to_string()));
        let rows = plan.kernels.iter().map(row).collect::<Result<Vec<_>>>()?;
        ensure!(!rows.is_empty(), "no kernel was measured");
        Ok(Summary {
            variants: plan.variants.clone(),
            dataset: plan.dataset.clone(),
            conditions: samples.conditions().to_owned(),
            rows,
        })
    }

    /// Of a file of raw times: of the variants that all kernels were measured in.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or native code was not measured.
    pub fn read(file: &Path) -> Result<Summary> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let dataset = name.strip_prefix("polybench-").and_then(|name| name.strip_suffix("-raw.csv"));
        let dataset = dataset.with_context(|| format!("{}: raw times are in polybench-SIZE-raw.csv", file.display()))?;
        let (conditions, times) = samples::read(file)?;
        let (mut kernels, mut variants) = (Vec::new(), Vec::new());
        let mut seconds: HashMap<(String, Variant), Vec<f64>> = HashMap::new();
        for Time { kernel, variant, seconds: time } in times {
            let variant = Variant::parse(&variant).with_context(|| file.display().to_string())?;
            if !variants.contains(&variant) {
                variants.push(variant);
            }
            if !kernels.contains(&kernel) {
                kernels.push(kernel.clone());
            }
            seconds.entry((kernel, variant)).or_default().push(time);
        }
        // Rounds begin with different variants.
        variants.sort_by_key(|variant| (*variant != Variant::Native, *variant != Variant::NativeMarch));
        kernels.sort();
        let of = |kernel: &str, variant| seconds.get(&(kernel.to_owned(), variant)).map_or(&[][..], Vec::as_slice);
        variants.retain(|variant| kernels.iter().all(|kernel| !of(kernel, *variant).is_empty()));
        ensure!(variants.first() == Some(&Variant::Native), "{}: native code was not measured", file.display());
        let rows = kernels.iter().map(|kernel| Row::new(kernel, &variants, |variant| of(kernel, variant)));
        let rows = rows.collect::<Result<Vec<_>>>()?;
        Ok(Summary { variants, dataset: dataset.to_uppercase(), conditions, rows })
    }

    /// The size, by PolyBench's name.
    pub fn dataset(&self) -> &str {
        &self.dataset
    }

    /// How far the runs of each kernel as `variant` are apart, as a share, in the order of [`Summary::kernels`].
    ///
    /// # Errors
    ///
    /// If it was not measured.
    pub fn noises(&self, variant: Variant) -> Result<Vec<f64>> {
        let column = self.column(variant)?;
        Ok(self.rows.iter().map(|row| row.noises[column]).collect())
    }

    /// The kernels, in the order of [`Summary::ratios`].
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.kernel.as_str())
    }

    /// Each kernel's time as `variant` over that as `base`.
    ///
    /// # Errors
    ///
    /// If one of them was not measured.
    pub fn ratios(&self, variant: Variant, base: Variant) -> Result<Vec<f64>> {
        let (over, under) = (self.column(variant)?, self.column(base)?);
        Ok(self.rows.iter().map(|row| row.medians[over] / row.medians[under]).collect())
    }

    /// What [`Summary::ratios`] come to.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn over(&self, variant: Variant, base: Variant) -> Result<Ratios> {
        Ok(Ratios::of(&self.ratios(variant, base)?))
    }

    fn column(&self, variant: Variant) -> Result<usize> {
        self.variants.iter().position(|known| *known == variant).with_context(|| format!("{variant} was not measured"))
    }

    /// A line for each kernel and variant.
    pub fn csv(&self) -> String {
        let mut text = format!("# {}\nkernel,variant,runs,median_s,ratio_native,ratio_native_march\n", self.conditions);
        for row in &self.rows {
            for (variant, median) in self.variants.iter().zip(&row.medians) {
                let (native, march) = (median / row.medians[0], median / row.medians[1]);
                let _ = writeln!(text, "{},{variant},{},{median:.9},{native:.4},{march:.4}", row.kernel, row.runs);
            }
        }
        text
    }

    /// The tables of ratios to native code, with means: for any processor, and by `-march=native`.
    ///
    /// # Errors
    ///
    /// None for a summary of a whole plan.
    pub fn markdown(&self, plan: &Plan) -> Result<String> {
        let mut text = format!(
            "# PolyBench, {}\n\nMedians of one interleaved run on one core; {}, commit {}.\n{}.\n\n\
             Time in seconds for native code (clang -O3), for the others the ratio to it; below 1 is faster.\n\n",
            self.dataset,
            machine::description(),
            machine::commit(),
            self.conditions
        );
        text.push_str(&self.table(Variant::Native)?);
        text.push_str("\nThe same against clang -O3 -march=native:\n\n");
        text.push_str(&self.table(Variant::NativeMarch)?);
        let file = plan.file("ratios.svg");
        let _ = write!(text, "\n![ratios to native code]({})\n", file.file_name().unwrap_or_default().display());
        Ok(text)
    }

    /// One column per variant, one row per kernel, and the means; as Markdown, which reads well on a terminal too.
    ///
    /// # Errors
    ///
    /// If `base` was not measured.
    pub fn table(&self, base: Variant) -> Result<String> {
        let others: Vec<_> = self.variants.iter().copied().filter(|variant| *variant != base).collect();
        let widths: Vec<_> = others.iter().map(|variant| variant.to_string().len()).collect();
        let mut text = format!("| {:<16} | {:>12} |", "kernel", base.to_string());
        for variant in &others {
            let _ = write!(text, " {variant} |");
        }
        text.push_str("\n|------------------|-------------:|");
        for width in &widths {
            let _ = write!(text, "{:->1$}|", ":", width + 2);
        }
        text.push('\n');
        let columns = others.iter().map(|variant| self.ratios(*variant, base)).collect::<Result<Vec<_>>>()?;
        let seconds = self.column(base)?;
        for (index, row) in self.rows.iter().enumerate() {
            let _ = write!(text, "| {:<16} | {:>12.6} |", row.kernel, row.medians[seconds]);
            for (column, width) in columns.iter().zip(&widths) {
                let _ = write!(text, " {:>width$.2} |", column[index]);
            }
            text.push('\n');
        }
        let names = ["arithmetic mean", "geometric mean", "worst", "within 1.1x"];
        let all: Vec<_> = columns.iter().map(|column| Ratios::of(column).printed()).collect();
        for (line, name) in names.iter().enumerate() {
            let _ = write!(text, "| {name:<16} | {:>12} |", "");
            for (printed, width) in all.iter().zip(&widths) {
                let _ = write!(text, " {:>width$} |", printed[line]);
            }
            text.push('\n');
        }
        Ok(text)
    }
}

/// The middle one, or the mean of the two in the middle; none of none.
fn median(times: &[f64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0]), Some(2.5));
        let ratios = Ratios::of(&[0.5, 2.0, 1.0]);
        assert!((ratios.geometric - 1.0).abs() < 1e-12 && (ratios.arithmetic - 3.5 / 3.0).abs() < 1e-12);
        assert_eq!((ratios.worst, ratios.within), (2.0, 2));
    }
}
