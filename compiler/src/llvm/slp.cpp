// Vectorises straight-line code where that may be worth the time.
//
// LLVM's pass for it takes a tenth of the whole compilation of a large program, in which hardly any function has an expression to vectorise. So it
// runs where functions compute: on numbers with fractions or vectors anywhere, on integers in a loop without calls that reads or writes
// several, or when they write a row of narrow ones that they compute there. A row of 64-bit integers is hardly more than a stack frame,
// and so is a row of values from other blocks: Asyncify writes all variables of a function so.

#include "passes.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Vectorize/SLPVectorizer.h"

using namespace llvm;

// Narrow integers that a block has to write.
constexpr unsigned RowMin = 4;
// What an iteration has to read, or to write.
constexpr unsigned LoopLoadsMin = 4;
constexpr unsigned LoopStoresMin = 2;

static bool isFractionOrVector(const Instruction &instruction) {
    Type *type = isa<StoreInst>(instruction) ? instruction.getOperand(0)->getType() : instruction.getType();
    return type->isFPOrFPVectorTy() || type->isVectorTy();
}

// Whether a narrow integer is written that is constant, or computed in the same block.
static bool isNarrowStore(const Instruction &instruction) {
    auto *type = isa<StoreInst>(instruction) ? dyn_cast<IntegerType>(instruction.getOperand(0)->getType()) : nullptr;
    if (!type || type->getBitWidth() >= 64)
        return false;
    const auto *value = dyn_cast<Instruction>(instruction.getOperand(0));
    return value ? value->getParent() == instruction.getParent() && !isa<PHINode>(value) : isa<Constant>(instruction.getOperand(0));
}

// Whether an iteration has no call, and reads or writes enough that some of it may be done together.
static bool hasRows(const Loop &loop) {
    unsigned loads = 0, stores = 0;
    for (const BasicBlock *block : loop.blocks())
        for (const Instruction &instruction : *block) {
            if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
                return false;
            loads += isa<LoadInst>(instruction);
            stores += isa<StoreInst>(instruction);
        }
    return loads >= LoopLoadsMin || stores >= LoopStoresMin;
}

static bool computes(const Function &function, const LoopInfo &loops) {
    for (const BasicBlock &block : function)
        if (any_of(block, isFractionOrVector) || count_if(block, isNarrowStore) >= RowMin)
            return true;
    return any_of(loops.getLoopsInPreorder(), [](const Loop *loop) { return loop->isInnermost() && hasRows(*loop); });
}

namespace awsm {

PreservedAnalyses SlpPass::run(Function &function, FunctionAnalysisManager &analyses) {
    const bool isWorthwhile = computes(function, analyses.getResult<LoopAnalysis>(function));
    return isWorthwhile ? SLPVectorizerPass().run(function, analyses) : PreservedAnalyses::all();
}

} // namespace awsm
