//! Sizes, in the unit of a drawing: pixels or cells.

/// How large things are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metrics {
    /// Of one character of a name, in thousandths.
    pub(super) name_char_milli: i64,
    /// Of one character of a label, in thousandths.
    pub(super) label_char_milli: i64,
    /// What a box is wider than its text.
    pub(super) box_pad: i64,
    /// The least width of a box.
    pub(super) box_min: i64,
    pub(super) box_height: i64,
    /// Width and height of the markers of start and end.
    pub(super) marker: (i64, i64),
    pub(super) label_height: i64,
    /// What a label is wider than its text: its line, and blanks.
    pub(super) label_pad: i64,
    /// Between two boxes of a layer.
    pub(super) between: i64,
    /// From a layer to the first track, between tracks, and from the last one to the next layer (with the arrow).
    pub(super) track: (i64, i64, i64),
    /// A line that would bend by no more than this is straight.
    pub(super) snap: i64,
    /// Between lanes.
    pub(super) lane: i64,
    /// Frames: to the sides, above and below what is in them.
    pub(super) frame_pad: (i64, i64, i64),
    /// Between branches.
    pub(super) branches: i64,
    /// Characters of names and of labels.
    pub(super) name_chars: usize,
    pub(super) label_chars: usize,
    /// Branches lie below each other.
    pub(super) stacked: bool,
    /// Name and type stand in one line.
    pub(super) one_line: bool,
}

impl Metrics {
    /// Pixels.
    pub(super) const PIXELS: Self = Self {
        name_char_milli: 7_600,
        label_char_milli: 6_500,
        box_pad: 28,
        box_min: 110,
        box_height: 46,
        marker: (22, 22),
        label_height: 18,
        label_pad: 16,
        between: 26,
        track: (12, 11, 20),
        snap: 12,
        lane: 14,
        frame_pad: (18, 44, 18),
        branches: 22,
        name_chars: 32,
        label_chars: 36,
        stacked: false,
        one_line: false,
    };

    /// Cells, with names of so many characters.
    pub(super) const fn cells(name_chars: usize, stacked: bool) -> Self {
        Self {
            name_char_milli: 1_000,
            label_char_milli: 1_000,
            box_pad: 4,
            box_min: 7,
            box_height: 3,
            marker: (7, 1),
            label_height: 1,
            label_pad: 3,
            between: 2,
            track: (1, 1, 1),
            snap: 0,
            lane: 2,
            frame_pad: (2, 2, 1),
            branches: 2,
            name_chars,
            label_chars: name_chars,
            stacked,
            one_line: true,
        }
    }
}
