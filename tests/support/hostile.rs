//! A function on which LLVM's optimisation works for hours.

const LOOPS: usize = 300;
const LOCALS: usize = 30;

/// The text of a function `$hostile` from `i32` to `i32`. Each of its loops goes on with what others counted, which keeps scalar evolution busy.
#[must_use]
pub fn function() -> String {
    let locals = "(local i32)".repeat(LOCALS + 1);
    let step = |k: usize| {
        let [a, b, c] = [k * 7 + 1, k * 11 + 2, k * 13 + 3].map(|sum| sum % LOCALS + 2);
        format!(
            "(loop $l{k} (local.set {a} (i32.add (local.get {a}) (i32.mul (local.get {b}) (i32.const {})))) \
             (br_if $l{k} (i32.lt_u (local.tee {c} (i32.add (local.get {c}) (i32.const 1))) (local.get 0))))",
            k + 3
        )
    };
    let steps: String = (0..LOOPS).map(step).collect();
    format!(
        "(func $hostile (param i32) (result i32) {locals} (loop $outer {steps}
           (br_if $outer (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (local.get 0)))) (local.get 2))"
    )
}
