#include "passes.h"

namespace awsm {

llvm::PreservedAnalyses ChecksPass::run(llvm::Function &, llvm::FunctionAnalysisManager &) {
    return llvm::PreservedAnalyses::all();
}

} // namespace awsm
