//! Lines: how object code names places of a program.
//!
//! In artifacts, lines of a part count from the start of its module's code section, or, where several modules share it, of one section behind the other. So object
//! code is the same whatever stands before these sections. Texts, which people read, name places as they are.

/// What the lines of a part stand for.
#[derive(Debug)]
pub(crate) struct Lines {
    /// For each module in the part, the line behind which its lines begin, and the place for which that line stands.
    starts: Vec<(u32, u32)>,
}

impl Lines {
    /// Those that are the program's own places.
    pub(crate) fn own() -> Lines {
        Lines { starts: vec![(0, 0)] }
    }

    /// Those of code sections, each given by its start in the program and its size.
    pub(crate) fn of_sections(sections: impl Iterator<Item = (u32, u32)>) -> Lines {
        let mut line = 0;
        let starts = sections.map(|(start, bytes)| {
            let first = line;
            line += bytes;
            (first, start)
        });
        Lines { starts: starts.collect() }
    }

    /// Where lines of the part's module of that number begin, and for what place.
    pub(crate) fn start(&self, member: usize) -> (u32, u32) {
        self.starts.get(member).or(self.starts.last()).copied().unwrap_or_default()
    }

    /// The place in the program for which a line stands; none where there is no such place.
    pub(crate) fn place(&self, line: u32) -> Option<u32> {
        let before = self.starts.partition_point(|&(start, _)| start < line).checked_sub(1)?;
        let (start, place) = self.starts[before];
        place.checked_add(line - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_stands_for_a_place_of_its_section() {
        let lines = Lines::of_sections([(100, 11), (5_000, 21), (7_000, 1)].into_iter());
        assert_eq!([lines.start(0), lines.start(1), lines.start(2)], [(0, 100), (11, 5_000), (32, 7_000)]);
        let places = [0, 1, 11, 12, 32, 33].map(|line| lines.place(line));
        assert_eq!(places, [None, Some(101), Some(111), Some(5_001), Some(5_021), Some(7_001)]);
        assert_eq!(lines.place(u32::MAX), None, "behind the end of all");
        assert_eq!((Lines::own().start(3), Lines::own().place(7)), ((0, 0), Some(7)));
    }
}
