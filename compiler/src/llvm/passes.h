// Our own passes. Each is named in pipelines (passes.rs) as LLVM's are.

#pragma once

#include "llvm/IR/PassManager.h"

namespace awsm {

// checks.cpp: "awsm-checks".
struct ChecksPass : llvm::PassInfoMixin<ChecksPass> {
    llvm::PreservedAnalyses run(llvm::Function &function, llvm::FunctionAnalysisManager &analyses);
};

} // namespace awsm
