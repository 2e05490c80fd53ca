//! Circles in graphs: messages that have themselves inside, packages that use each other.

/// The strongly connected components of a graph that are circles: several nodes that reach each other, or one with an edge to itself. Each is
/// sorted; they come in the order of their first nodes. Tarjan's algorithm (1972), without recursion: a file may nest as deeply as it likes.
#[must_use]
pub(super) fn circles(edges: &[Vec<usize>]) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let mut number = vec![NEW; edges.len()];
    let mut low = vec![NEW; edges.len()];
    let mut is_open = vec![false; edges.len()];
    let (mut open, mut next, mut found) = (Vec::new(), 0, Vec::new());
    for root in 0..edges.len() {
        if number[root] != NEW {
            continue;
        }
        // Nodes on the way from the root, each with how many of its edges were taken.
        let mut way = vec![(root, 0)];
        while let Some((node, taken)) = way.pop() {
            if taken == 0 {
                (number[node], low[node]) = (next, next);
                next += 1;
                open.push(node);
                is_open[node] = true;
            }
            if let Some(&to) = edges[node].get(taken) {
                way.push((node, taken + 1));
                if number[to] == NEW {
                    way.push((to, 0));
                } else if is_open[to] {
                    low[node] = low[node].min(number[to]);
                }
                continue;
            }
            if let Some(&(before, _)) = way.last() {
                low[before] = low[before].min(low[node]);
            }
            if low[node] == number[node] {
                let start = open.iter().rposition(|member| *member == node).unwrap_or(0);
                let mut members = open.split_off(start);
                members.iter().for_each(|member| is_open[*member] = false);
                members.sort_unstable();
                if members.len() > 1 || edges[node].contains(&node) {
                    found.push(members);
                }
            }
        }
    }
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::circles;

    #[test]
    fn circles_are_found() {
        assert!(circles(&[]).is_empty());
        assert!(circles(&[vec![1, 1], vec![2], vec![]]).is_empty());
        assert_eq!(circles(&[vec![0]]), [vec![0]]);
        // 0 -> 1 <-> 2, 3 -> 3, 4 -> 5 -> 6 -> 4 by way of 0.
        let edges = [vec![1], vec![2], vec![1], vec![3, 0], vec![0, 5], vec![6], vec![4, 5]];
        assert_eq!(circles(&edges), [vec![1, 2], vec![3], vec![4, 5, 6]]);
    }

    #[test]
    fn a_long_way_needs_no_stack() {
        let count = 200_000;
        let mut edges: Vec<Vec<usize>> = (1..=count).map(|to| vec![to]).collect();
        edges.push(vec![0]);
        assert_eq!(circles(&edges).len(), 1);
    }
}
