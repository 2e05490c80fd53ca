//! Drawings of a definition's graph: as SVG, and as text.
//!
//! ```text
//!   Definition --graph--> nodes, edges --layers--> vertices in layers --columns--> x --route--> y, lines --compose--> Scene --> svg, text
//!                                                                          `-- frames of Parallel and Map hold scenes of their own
//! ```
//!
//! - `graph`: what leads where, loops found; `layers`: longest paths, bends and labels as vertices, order by barycentres; `columns`: places in a layer; `route`: tracks
//!   between layers and lanes beside them; `compose`: frames; `scene`: the outcome; `metrics`: sizes in pixels or cells; `label`: short texts; [`limits`].
//!
//! Invariants: the same definition gives the same drawing; no line crosses a box; no definition makes this code panic or go on without bound.
//! Source of the method: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System Structures, 1981.

mod columns;
mod compose;
mod graph;
mod label;
mod layers;
pub mod limits;
mod metrics;
mod route;
mod scene;
mod svg;
mod text;

pub use self::svg::escaped;

use self::compose::Composer;
use self::limits::{STATES_MAX, TEXT_COLUMNS};
use self::metrics::Metrics;
use crate::definition::{Definition, MachineIndex};

/// Characters of names in a drawing as text: the first with which the drawing fits is taken.
const NAME_CHARS: [usize; 4] = [36, 24, 16, 10];

/// The graph as an SVG document with its own style, which is readable on light and on dark screens. Full names and conditions are its tooltips.
#[must_use]
pub fn svg(definition: &Definition) -> String {
    if let Some(sentence) = too_large(definition) {
        return svg::sentence(&sentence);
    }
    let scene = Composer::new(definition, Metrics::PIXELS).scene();
    svg::write(definition, &scene, &Metrics::PIXELS)
}

/// The graph as lines of text. It fits [`TEXT_COLUMNS`] columns, if that can be: with names cut, and then with branches below each other.
#[must_use]
pub fn text(definition: &Definition) -> String {
    if let Some(sentence) = too_large(definition) {
        return format!("{sentence}\n");
    }
    let framed = definition.machine(MachineIndex(1)).is_some();
    let tries = [false, true]
        .into_iter()
        .filter(|stacked| !stacked || framed)
        .flat_map(|stacked| NAME_CHARS.map(|chars| Metrics::cells(chars, stacked)));
    let mut last = None;
    for metrics in tries {
        let scene = Composer::new(definition, metrics).scene();
        let fits = scene.width <= TEXT_COLUMNS;
        last = Some((scene, metrics));
        if fits {
            break;
        }
    }
    let drawn = last.and_then(|(scene, metrics)| text::write(definition, &scene, &metrics));
    drawn.unwrap_or_else(|| "The workflow is too large to be drawn as text; draw it as SVG.\n".to_owned())
}

fn too_large(definition: &Definition) -> Option<String> {
    let count = definition.states().len();
    (count > STATES_MAX).then(|| format!("The workflow has {count} states; drawings show at most {STATES_MAX}."))
}
