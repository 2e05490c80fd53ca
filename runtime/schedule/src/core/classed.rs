//! What is next where microtasks have classes: of the tenant the class, then of the class the function.
//!
//! Some requests may be *held*: they are not begun now, since their later microtasks would only wait. A tenant, class or function that has nothing else is passed over. If nothing else
//! is left at all, the worker looks for work elsewhere and waits, but no longer than a quantum: others may have become idle meanwhile and take what is held.

use std::time::Instant;

use super::{Action, Core, Event};
use crate::classes::{CLASSES, Classes, Microtask, Microtasks};
use crate::policy::Policy;
use crate::task::{FunctionId, Task, TaskId, TenantId};
use crate::turns::Has;

impl Core {
    /// Gives microtasks classes, before anything is to be run. Under [`Policy::RoundRobin`] only: the other orders are what they are.
    pub(crate) fn set_classes(&mut self, classes: Option<Classes>) {
        let classes = classes.filter(|_| self.policy == Policy::RoundRobin);
        self.groups_each = if classes.is_some() { CLASSES } else { 1 };
        self.classes = classes.map(|classes| Box::new(Microtasks::new(classes, self.quantum)));
    }

    /// Whether microtasks have classes, and are to be [announced](Core::announce).
    pub(crate) const fn has_classes(&self) -> bool {
        self.classes.is_some()
    }

    /// What a task does next: at its arrival, and before it is said that it blocks or begins another phase.
    pub(crate) fn announce(&mut self, id: TaskId, microtask: Microtask) {
        if let Some(classes) = &mut self.classes {
            classes.announce(id, microtask);
        }
    }

    /// Whether there is something to run, but it is not begun now.
    pub(crate) const fn is_holding(&self) -> bool {
        self.holds_until.is_some()
    }

    /// See [`Scheduler::take_class_counts`](crate::Scheduler::take_class_counts).
    pub(crate) fn take_class_counts(&mut self) -> Option<[[u64; 2]; CLASSES]> {
        self.classes.as_mut().map(|classes| classes.take_counts())
    }

    /// A task is not to be run here any more.
    pub(super) fn gone(&mut self, task: &Task) {
        if let Some(classes) = &mut self.classes {
            classes.gone(task.id, task.tenant);
        }
    }

    /// Whether an arrival is not held. Its class is found, too.
    pub(super) fn may_begin_at_once(&mut self, task: &mut Task, now: Instant) -> bool {
        let Some(classes) = &mut self.classes else { return true };
        classes.arrived(task);
        task.class = classes.classify(task, now);
        !classes.is_held(task.tenant, task.function)
    }

    /// A task runs in its class, and begins if it has not.
    pub(super) fn runs_in_class(&mut self, task: &Task, now: Instant) {
        if let Some(tenant) = self.tenants.get_mut(task.tenant.0 as usize) {
            tenant.sharing.runs(task.class);
        }
        if let Some(classes) = self.classes.as_mut().filter(|_| !task.started) {
            classes.begins(task, now);
        }
    }

    /// Runs the next task of the next class of the next tenant.
    pub(super) fn next_of_classes(&mut self, now: Instant) -> Action {
        let full = self.is_full();
        if let Some((task, is_held)) = self.find(|classes, tenant, function| full || classes.is_held(tenant, function)) {
            self.holds_until = None;
            return self.run_first(task, is_held, now);
        }
        // Looking for more comes before waiting, and before what would only wait later.
        self.holds_until = Some(now + self.quantum);
        if !self.looked {
            return Action::Look;
        }
        if full {
            return Action::Wait;
        }
        let at = self.classes.as_ref().and_then(|classes| classes.begins_anyway_at()).unwrap_or(now);
        if at > now {
            self.holds_until = Some(at.min(now + self.quantum));
            return Action::Wait;
        }
        self.holds_until = None;
        let Some((task, _)) = self.find(|_, _, _| false) else { return Action::Wait };
        self.run_first(task, false, now)
    }

    /// The next task, where some functions may begin nothing; and whether its function is one of these.
    fn find(&mut self, is_held: impl Fn(&Microtasks, TenantId, FunctionId) -> bool) -> Option<(Task, bool)> {
        let Core { tenants, turns, groups, classes, groups_each, .. } = self;
        let classes = classes.as_deref()?;
        let mut found = None;
        turns.next(|id| {
            let tenant = &mut tenants[id.0 as usize];
            if tenant.waiting == 0 {
                return tenant.turn.look(Has::Nothing);
            }
            let functions = &mut tenant.functions;
            let next = tenant.sharing.next(|class| {
                let class = usize::from(class);
                functions[class].next(|function| {
                    let group = &mut groups[function.0 as usize * *groups_each + class];
                    group.turn.look(match (group.waiting(), group.started()) {
                        (0, _) => Has::Nothing,
                        (_, 0) if is_held(classes, id, function) => Has::NothingNow,
                        _ => Has::Something,
                    })
                })
            });
            found = next.and_then(|(class, function)| {
                let is_held = is_held(classes, id, function);
                let group = &groups[function.0 as usize * *groups_each + usize::from(class)];
                group.first(is_held).map(|task| (*task, is_held))
            });
            tenant.turn.look(if found.is_some() { Has::Something } else { Has::NothingNow })
        })?;
        found
    }

    /// Whether an event ends a microtask, whose next one is announced before.
    pub(crate) const fn ends_microtask(event: &Event) -> bool {
        matches!(event, Event::Blocked { .. } | Event::Phase { .. })
    }
}
