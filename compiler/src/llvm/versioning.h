// Two versions of a loop, of which a comparison before it chooses one.
//
//     before:   preheader ---------------------------> loop --> exits
//
//     after:    preheader: is it proven? ----- yes --> loop --> exits
//                                      \------ no ---> copy ----^
//
// What holds afterwards: the copy is the loop as it was, whatever becomes of the loop itself. So the pass that asks for versions may make of the
// loop anything that does the same where the comparison lets the loop run, and needs not care where it does not: whether an iteration traps, where, and
// after what effects is then decided by the copy, exactly as it always was.
//
// Why: the copy is made before the loop is changed; the comparison is computed in the preheader, of values that are there; and what is used behind
// the loop comes out of it through phis in its exit blocks (LCSSA form), each of which gets the copy's value beside the loop's for every edge.
//
// What breaks if not: without LCSSA form a use behind the loop would still name the loop's value, which the copy never computes. Where an exit
// block had a way in from elsewhere, its phis would merge the copy's values in places where there are none. Where the comparison lets the
// changed loop run although it does something else than the loop as it was, a guest could lose a trap or touch what it may not: the comparison is the
// proof, and the only one. Passes over loops that take the copy for one of many would spend code on what hardly ever runs: it is marked.

#pragma once

#include "llvm/ADT/Twine.h"

namespace llvm {
class DominatorTree;
class Loop;
class LoopInfo;
class ScalarEvolution;
class Value;
} // namespace llvm

namespace awsm {

// Whether the loop has the form that versions want. LCSSA form is that of the whole function's loops, which loop-simplify and lcssa give.
bool canVersion(const llvm::Loop &loop, const llvm::DominatorTree &dominators);

// Analyses that stay true. Keeping them wants loop-simplify form and a single exit block, and gives both versions preheaders and exit blocks of
// their own; without, no block is added but those of the copy, and analyses of the function do not outlive it.
struct KeptAnalyses {
    llvm::LoopInfo &loops;
    llvm::DominatorTree &dominators;
    llvm::ScalarEvolution &evolution;
};

enum class LoopVersion { Loop, Copy };

// Which version runs: a value in the preheader, and what it means. LLVM makes other code of an inverted comparison, so that each pass says it as
// it finds it.
struct Choice {
    llvm::Value *condition;
    LoopVersion ifTrue;
};

// Gives the loop a copy, named with the suffix, and lets the choice decide, which as a rule is for the loop. No pass that unrolls, vectorises or
// distributes loops works on the copy from then on.
void versionLoop(llvm::Loop &loop, const Choice &choice, const llvm::Twine &suffix, const KeptAnalyses *kept = nullptr);

} // namespace awsm
