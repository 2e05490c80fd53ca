// Our own passes. Each is named in pipelines (passes.rs) as LLVM's are.
//
// Constants, in all files here: `constexpr`, named as LLVM names its own and our enumerators, in UpperCamelCase with the unit or `Max` and `Min`
// last (`InstructionsMax`). They stand at the top of the file, outside of functions, without `static`, which they are anyway; in headers they are
// `inline`. What Rust has to know too stands in shared.rs, and comes from there as shared.h.

#pragma once

#include "llvm/IR/PassManager.h"

namespace awsm {

// checks.cpp, "awsm-implied-checks": drops bounds checks that others before them imply.
struct ImpliedChecksPass : llvm::PassInfoMixin<ImpliedChecksPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

// checks_neighbours.cpp, "awsm-neighbour-checks": makes one check of several of the same index, of which the first is not the widest.
struct NeighbourChecksPass : llvm::PassInfoMixin<NeighbourChecksPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

// checks_loops.cpp, "awsm-loop-checks": gives loops a version without checks. Wants loop-simplify and LCSSA form, and keeps neither.
struct LoopChecksPass : llvm::PassInfoMixin<LoopChecksPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

// affine.cpp, "awsm-affine": gives loops a version with 64-bit indices. Wants loop-simplify and LCSSA form, and keeps both.
struct AffinePass : llvm::PassInfoMixin<AffinePass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

// reroll.cpp, "awsm-reroll": rolls up loops that were unrolled. Wants loop-simplify and LCSSA form, and keeps both.
struct RerollPass : llvm::PassInfoMixin<RerollPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

// slp.cpp, "awsm-slp": LLVM's slp-vectorizer, where it may be worth its time.
struct SlpPass : llvm::PassInfoMixin<SlpPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace awsm
