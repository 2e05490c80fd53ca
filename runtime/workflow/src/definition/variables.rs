//! Which variables a state reads and assigns, where that can be told from its text.
//!
//! Paths name their variables. An expression of JSONata may have variables of its own, and functions look like variables: what it reads is not told.

use super::payload::{Number, Payload, Query, Selection, Text};
use super::state::{Batcher, ItemReader, Kind, MapState, Rule, State, Until};
use crate::data::{Expression as PathExpression, Path};

/// What a state assigns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Assigned<'a> {
    /// Variables of these names.
    Names(Vec<&'a str>),
    /// What an expression gives: any.
    Any,
}

impl State {
    /// The variables that its own paths read, not those of states inside of it. A name may be there more than once. Comparisons of a Choice are left out: they may ask whether a variable is there
    /// (`IsPresent`).
    pub(crate) fn reads(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let flow = &self.flow;
        [&flow.input_path, &flow.output_path].into_iter().for_each(|path| of_selection(path, &mut found));
        let payloads = [&flow.payload, &flow.result_selector, &flow.assign, &flow.output];
        payloads.into_iter().flatten().for_each(|payload| of_payload(payload, &mut found));
        match &self.kind {
            Kind::Task(task) => of_numbers([&task.timeout, &task.heartbeat], &mut found),
            Kind::Choice { rules, .. } => rules.iter().for_each(|rule| of_rule(rule, &mut found)),
            Kind::Wait(Until::Seconds(number)) => of_number(number, &mut found),
            Kind::Wait(Until::TimestampFrom(text)) => of_text(text, &mut found),
            Kind::Fail { error, cause } => [error, cause].into_iter().flatten().for_each(|text| of_text(text, &mut found)),
            Kind::Map(map) => of_map(map, &mut found),
            Kind::Pass { .. } | Kind::Wait(Until::Timestamp(_)) | Kind::Succeed | Kind::Parallel { .. } => {}
        }
        for catcher in self.kind.catchers() {
            [&catcher.assign, &catcher.output].into_iter().flatten().for_each(|payload| of_payload(payload, &mut found));
        }
        found
    }

    /// The variables that it assigns, whichever way it is left.
    pub(crate) fn assigns(&self) -> Assigned<'_> {
        let rules = match &self.kind {
            Kind::Choice { rules, .. } => &rules[..],
            _ => &[],
        };
        let of_catchers = self.kind.catchers().iter().map(|catcher| &catcher.assign);
        let all = [&self.flow.assign].into_iter().chain(rules.iter().map(|rule| &rule.assign)).chain(of_catchers);
        let mut names = Vec::new();
        for payload in all.flatten() {
            match payload {
                Payload::Template(template) => names.extend(template.members()),
                Payload::Query(Query::Object(members)) => names.extend(members.iter().map(|(name, _)| &**name)),
                Payload::Query(Query::Literal(value)) => {
                    names.extend(value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()));
                }
                Payload::Query(Query::Expression(_) | Query::Array(_)) => return Assigned::Any,
            }
        }
        Assigned::Names(names)
    }
}

fn of_path<'a>(path: &'a Path, found: &mut Vec<&'a str>) {
    found.extend(path.variables());
}

fn of_selection<'a>(selection: &'a Selection, found: &mut Vec<&'a str>) {
    if let Selection::Path(path) = selection {
        of_path(path, found);
    }
}

fn of_payload<'a>(payload: &'a Payload, found: &mut Vec<&'a str>) {
    if let Payload::Template(template) = payload {
        found.extend(template.variables());
    }
}

fn of_number<'a>(number: &'a Number, found: &mut Vec<&'a str>) {
    if let Number::Path(path) = number {
        of_path(path, found);
    }
}

fn of_numbers<'a, const COUNT: usize>(numbers: [&'a Option<Number>; COUNT], found: &mut Vec<&'a str>) {
    numbers.into_iter().flatten().for_each(|number| of_number(number, found));
}

fn of_text<'a>(text: &'a Text, found: &mut Vec<&'a str>) {
    if let Text::Path(expression) = text {
        match expression {
            PathExpression::Path(path) => of_path(path, found),
            PathExpression::Intrinsic(_) => found.extend(expression.variables()),
        }
    }
}

fn of_rule<'a>(rule: &'a Rule, found: &mut Vec<&'a str>) {
    [&rule.assign, &rule.output].into_iter().flatten().for_each(|payload| of_payload(payload, found));
}

fn of_map<'a>(map: &'a MapState, found: &mut Vec<&'a str>) {
    of_selection(&map.items_path, found);
    [&map.items, &map.item_selector].into_iter().flatten().for_each(|payload| of_payload(payload, found));
    of_numbers([&map.concurrency, &map.tolerated_count, &map.tolerated_percentage], found);
    if let Some(Batcher { items_max, bytes_max, input }) = &map.batcher {
        of_numbers([items_max, bytes_max], found);
        input.iter().for_each(|payload| of_payload(payload, found));
    }
    if let Some(ItemReader { payload, items_max, .. }) = &map.reader {
        payload.iter().for_each(|payload| of_payload(payload, found));
        of_numbers([items_max], found);
    }
    map.writer.iter().flat_map(|writer| &writer.payload).for_each(|payload| of_payload(payload, found));
}
