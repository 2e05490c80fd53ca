// Makes the addresses of loops sums of 64 bits.
//
// An address of WebAssembly is a 32-bit index, extended to 64 bits and added to the memory's base. Where a loop steps through an array, the
// index is `start + step * n`, a sum that may wrap at 2^32. So LLVM can tell neither that the address grows with the loop nor that index `i + 8`
// lies 8 bytes behind index `i`: such loops are hardly vectorised, and keep an addition and an extension for each access.
//
// This pass gives an innermost loop two versions (versioning.h). If no index of the loop can wrap, the first runs, in which extended indices
// are replaced by sums of 64 bits; else the second, which is the loop as it was. Accesses, their order, and so their traps are the same in both.

#include "passes.h"
#include "versioning.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace {

// Loops with more than this would cost more in code than they can gain.
constexpr unsigned InstructionsMax = 400;
constexpr unsigned GroupsMax = 12;
// What may be computed before a loop to decide between its versions, in units of LLVM's cost model.
constexpr unsigned DecisionCostMax = 16;
// A loop that runs less often is not worth a decision.
constexpr unsigned IterationsMin = 4;
// Times a count of 32 bits it fits into 64.
constexpr int64_t StepMax = 1 << 24;

// Indices that step alike, and so differ by constants.
struct Group {
    explicit Group(const SCEVAddRecExpr *lowest) : lowest(lowest) {}

    const SCEVAddRecExpr *lowest;
    int64_t span = 0; // from the lowest to the highest
    SmallVector<std::pair<ZExtInst *, int64_t>, 8> members; // with the distance from the first
    int64_t lowestDistance = 0;
    Value *start = nullptr; // of the lowest, extended

    int64_t step() const { return cast<SCEVConstant>(lowest->getOperand(1))->getAPInt().getSExtValue(); }
};

class Affine {
public:
    Affine(Function &function, FunctionAnalysisManager &analyses)
        : loops(analyses.getResult<LoopAnalysis>(function)),
          dominators(analyses.getResult<DominatorTreeAnalysis>(function)),
          evolution(analyses.getResult<ScalarEvolutionAnalysis>(function)),
          costs(analyses.getResult<TargetIRAnalysis>(function)) {}

    bool run();

private:
    bool isWorthwhile(const Loop &loop);
    SmallVector<Group, 4> indices(const Loop &loop);
    void add(SmallVectorImpl<Group> &groups, ZExtInst *extension, const SCEVAddRecExpr *index);
    bool isDecidable(Loop &loop, ArrayRef<Group> groups);
    Value *decision(const Loop &loop, MutableArrayRef<Group> groups);
    void widen(Loop &loop, ArrayRef<Group> groups);

    LoopInfo &loops;
    DominatorTree &dominators;
    ScalarEvolution &evolution;
    TargetTransformInfo &costs;
};

bool Affine::run() {
    SmallVector<Loop *, 8> innermost;
    for (Loop *loop : loops.getLoopsInPreorder())
        if (loop->isInnermost())
            innermost.push_back(loop);
    bool changed = false;
    for (Loop *loop : innermost) {
        if (!isWorthwhile(*loop))
            continue;
        SmallVector<Group, 4> groups = indices(*loop);
        if (groups.empty() || !isDecidable(*loop, groups))
            continue;
        const awsm::KeptAnalyses kept{loops, dominators, evolution};
        awsm::versionLoop(*loop, {decision(*loop, groups), awsm::LoopVersion::Copy}, ".wrap", &kept);
        widen(*loop, groups);
        evolution.forgetLoop(loop);
        changed = true;
    }
    return changed;
}

bool Affine::isWorthwhile(const Loop &loop) {
    if (!awsm::canVersion(loop, dominators) || !loop.getUniqueExitBlock() ||
        isa<SCEVCouldNotCompute>(evolution.getSymbolicMaxBackedgeTakenCount(&loop)))
        return false;
    unsigned iterations = evolution.getSmallConstantMaxTripCount(&loop);
    if (iterations != 0 && iterations < IterationsMin)
        return false;
    unsigned instructions = 0;
    for (BasicBlock *block : loop.blocks())
        for (Instruction &instruction : *block)
            if (++instructions > InstructionsMax || (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction)))
                return false;
    return true;
}

bool hasSmallStep(const SCEVAddRecExpr *index) {
    auto *step = dyn_cast<SCEVConstant>(index->getOperand(1));
    return step && step->getAPInt().abs().ule(StepMax);
}

// The extended 32-bit values of which LLVM does not know how they step.
SmallVector<Group, 4> Affine::indices(const Loop &loop) {
    SmallVector<Group, 4> groups;
    for (BasicBlock *block : loop.blocks()) {
        for (Instruction &instruction : *block) {
            auto *extension = dyn_cast<ZExtInst>(&instruction);
            if (!extension || !extension->getType()->isIntegerTy(64) || !extension->getSrcTy()->isIntegerTy(32) ||
                isa<SCEVAddRecExpr>(evolution.getSCEV(extension)))
                continue;
            auto *index = dyn_cast<SCEVAddRecExpr>(evolution.getSCEV(extension->getOperand(0)));
            if (index && index->getLoop() == &loop && index->isAffine() && hasSmallStep(index))
                add(groups, extension, index);
        }
    }
    return groups;
}

void Affine::add(SmallVectorImpl<Group> &groups, ZExtInst *extension, const SCEVAddRecExpr *index) {
    for (Group &group : groups) {
        auto *difference = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(index, group.lowest));
        if (!difference)
            continue;
        int64_t fromLowest = difference->getAPInt().getSExtValue();
        group.members.push_back({extension, group.lowestDistance + fromLowest});
        if (fromLowest < 0) {
            group.lowest = index;
            group.lowestDistance += fromLowest;
            group.span -= fromLowest;
        } else {
            group.span = std::max(group.span, fromLowest);
        }
        return;
    }
    groups.emplace_back(index);
    groups.back().members.emplace_back(extension, 0);
}

bool Affine::isDecidable(Loop &loop, ArrayRef<Group> groups) {
    if (groups.size() > GroupsMax)
        return false;
    const Instruction *end = loop.getLoopPreheader()->getTerminator();
    const SCEV *count = evolution.getSymbolicMaxBackedgeTakenCount(&loop);
    if (count->getType()->getScalarSizeInBits() > 64)
        return false;
    SmallVector<const SCEV *, 8> needed{count};
    for (const Group &group : groups)
        needed.push_back(group.lowest->getStart());
    SCEVExpander expander(evolution, "wrap");
    auto isSafe = [&](const SCEV *scev) { return expander.isSafeToExpandAt(scev, end); };
    return all_of(needed, isSafe) &&
           !expander.isHighCostExpansion(needed, &loop, DecisionCostMax * groups.size(), &costs, end);
}

// Whether an index of the loop may wrap: a comparison at the end of its preheader. All indices of a group lie between the lowest's first and last
// value, plus the span; these must lie below 2^32, and then every sum in between does.
Value *Affine::decision(const Loop &loop, MutableArrayRef<Group> groups) {
    Instruction *end = loop.getLoopPreheader()->getTerminator();
    IRBuilder<> builder(end);
    SCEVExpander expander(evolution, "wrap");
    const SCEV *count = evolution.getSymbolicMaxBackedgeTakenCount(&loop);
    Value *steps = expander.expandCodeFor(count, count->getType(), end);
    steps = builder.CreateZExtOrTrunc(steps, builder.getInt64Ty());
    Value *all = steps; // has bits beyond the 32nd if the number of steps or one of the sums has
    auto bounds = [&](Value *sum) { all = builder.CreateOr(all, sum); };
    for (Group &group : groups) {
        Value *first = expander.expandCodeFor(group.lowest->getStart(), builder.getInt32Ty(), end);
        group.start = builder.CreateZExt(first, builder.getInt64Ty());
        Value *highest = builder.CreateAdd(group.start, builder.getInt64(group.span));
        Value *way = builder.CreateMul(steps, builder.getInt64(group.step()));
        bounds(builder.CreateAdd(group.step() < 0 ? group.start : highest, way));
        if (group.step() < 0)
            bounds(highest);
    }
    return builder.CreateICmpUGT(all, builder.getInt64(UINT32_MAX));
}

// Replaces the extensions by sums of 64 bits, of which it is known that they do not wrap.
void Affine::widen(Loop &loop, ArrayRef<Group> groups) {
    BasicBlock *header = loop.getHeader();
    for (const Group &group : groups) {
        IRBuilder<> builder(header, header->begin());
        PHINode *index = builder.CreatePHI(builder.getInt64Ty(), 2, "index");
        index->addIncoming(group.start, loop.getLoopPreheader());
        builder.SetInsertPoint(loop.getLoopLatch()->getTerminator());
        Value *next = builder.CreateAdd(index, builder.getInt64(group.step()), "", group.step() >= 0, true);
        index->addIncoming(next, loop.getLoopLatch());
        for (auto [extension, distance] : group.members) {
            builder.SetInsertPoint(extension);
            Value *sum = index;
            if (distance != group.lowestDistance)
                sum = builder.CreateAdd(index, builder.getInt64(distance - group.lowestDistance), "", true, true);
            extension->replaceAllUsesWith(sum);
            extension->eraseFromParent();
        }
    }
    DeleteDeadPHIs(header);
}

} // namespace

namespace awsm {

PreservedAnalyses AffinePass::run(Function &function, FunctionAnalysisManager &analyses) {
    return Affine(function, analyses).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace awsm
