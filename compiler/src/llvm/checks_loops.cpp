// Loops without bounds checks: "awsm-loop-checks".
//
//     before:  if all indices of all iterations are inside: fast loop; otherwise: checked loop      (versioning.h)
//
// An index is proven when it is the same in all iterations, or when it moves by the same step in each and a bound of the number of iterations
// is known before the first: then its first and its last value bound all others. Both are computed in 64 bits, where nothing wraps, as
// are the indices of the fast loop from then on; a 32-bit index that is inside memory is equal to its 64-bit form. The length at that
// time is a lower bound of all lengths to come. Where the comparison fails, perhaps because of an access that never comes to pass, the
// loop runs with all of its checks: whether it traps, where, and after what effects is decided there.

#include "checks.h"
#include "passes.h"
#include "versioning.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;

namespace awsm {

// Larger loops are not worth a copy, nor are more of them in one function.
constexpr size_t LoopInstructionsMax = 2000;
constexpr size_t FunctionInstructionsMax = 20000;
// With steps of 32 bits and bounds below that, no sum comes near 64 bits.
constexpr uint64_t IterationsMax = uint64_t(1) << 30;
constexpr uint64_t FirstMax = uint64_t(1) << 48;

namespace {

// Checks of one record whose indices differ by constants and move by the same step.
struct Group {
    LoadInst *length;
    const SCEV *first; // of the first check found, in the first iteration
    const SCEV *step;  // null where the index does not move
    int64_t least, end; // from there: the first and behind the last byte
    Value *firstValue = nullptr, *stepValue = nullptr; // 64 bits, in the preheader
    bool up = false;                                   // whether the step is known not to be negative
};

// An index of the loop that is widened with it.
struct Member {
    const SCEV *index;
    unsigned group;
    int64_t distance; // from the group's first
};

// What one loop becomes.
class Version {
public:
    Version(Loop &loop, DominatorTree &dominators, ScalarEvolution &evolution)
        : loop(loop), preheader(loop.getLoopPreheader()), dominators(dominators), evolution(evolution) {}

    // Whether anything can be proven before the loop.
    bool plan(size_t &room);
    // Computes the proof in the preheader; no block changes.
    void prove(SCEVExpander &expander);
    // Copies the loop. Analyses are not valid afterwards.
    void split();

private:
    bool add(const Check &check);
    bool addMoving(const Check &check, const SCEVAddRecExpr &index, uint64_t bytes);
    bool canExpand(const SCEV *expression) const;
    const SCEV *iterations();
    Value *lengthBefore(LoadInst *length, IRBuilder<> &builder);
    void widen();

    Loop &loop;
    BasicBlock *preheader;
    DominatorTree &dominators;
    ScalarEvolution &evolution;
    const SCEV *bound = nullptr;
    bool boundKnown = false;
    SmallVector<Check> proven;
    SmallVector<Group, 8> groups;
    SmallVector<Member, 8> members;
    SmallVector<std::pair<ZExtInst *, unsigned>> widenings; // with their member
    Value *inside = nullptr;
};

bool Version::canExpand(const SCEV *expression) const {
    SCEVExpander expander(evolution, "");
    return evolution.isLoopInvariant(expression, &loop) && expander.isSafeToExpandAt(expression, preheader->getTerminator());
}

// A bound of how often the loop comes back to its header, which can be computed before it; null if none is known.
const SCEV *Version::iterations() {
    if (boundKnown)
        return bound;
    boundKnown = true;
    SmallVector<BasicBlock *, 8> exiting;
    loop.getExitingBlocks(exiting);
    for (BasicBlock *block : exiting) {
        if (checkAt(*block) || !dominators.dominates(block, loop.getLoopLatch()))
            continue;
        const SCEV *count = evolution.getExitCount(&loop, block);
        if (isa<SCEVCouldNotCompute>(count) || !canExpand(count))
            continue;
        bound = bound ? evolution.getUMinFromMismatchedTypes(bound, count) : count;
    }
    return bound;
}

bool Version::addMoving(const Check &check, const SCEVAddRecExpr &index, uint64_t bytes) {
    // Where no byte has to be inside the index could be 4 GiB, which has no 32-bit form.
    bytes = std::max<uint64_t>(bytes, 1);
    const SCEV *first = index.getStart(), *step = index.getStepRecurrence(evolution);
    if (!index.isAffine() || !iterations() || !canExpand(first) || !canExpand(step))
        return false;
    bool wide = index.getType()->isIntegerTy(64);
    if (wide) {
        const auto *constant = dyn_cast<SCEVConstant>(step);
        if (!constant || constant->getAPInt().getSignificantBits() > 32)
            return false;
    }
    for (auto [number, group] : enumerate(groups)) {
        if (group.step != step || group.length->getPointerOperand() != check.length->getPointerOperand())
            continue;
        const auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(first, group.first));
        if (!distance || distance->getAPInt().getSignificantBits() > 32)
            continue;
        int64_t from = distance->getAPInt().getSExtValue();
        group.least = std::min(group.least, from);
        group.end = std::max(group.end, from + int64_t(bytes));
        members.push_back({&index, unsigned(number), from});
        return true;
    }
    members.push_back({&index, unsigned(groups.size()), 0});
    groups.push_back({check.length, first, step, 0, int64_t(bytes)});
    return true;
}

bool Version::add(const Check &check) {
    auto *record = dyn_cast<Instruction>(check.length->getPointerOperand());
    if (record && !dominators.dominates(record, preheader->getTerminator()))
        return false;
    auto [index, bytes] = indexOf(check, evolution);
    if (evolution.isLoopInvariant(index, &loop)) {
        const SCEV *whole = evolution.getSCEV(check.index);
        if (!canExpand(whole))
            return false;
        for (Group &group : groups) {
            if (group.step || group.first != whole || group.length->getPointerOperand() != check.length->getPointerOperand())
                continue;
            group.end = std::max(group.end, int64_t(check.bytes));
            return true;
        }
        groups.push_back({check.length, whole, nullptr, 0, int64_t(check.bytes)});
        return true;
    }
    const auto *moving = dyn_cast<SCEVAddRecExpr>(index);
    return moving && moving->getLoop() == &loop && addMoving(check, *moving, bytes);
}

bool Version::plan(size_t &room) {
    if (!canVersion(loop, dominators))
        return false;
    size_t instructions = 0;
    for (BasicBlock *block : loop.blocks()) {
        instructions += block->size();
        if (!isa<BranchInst, SwitchInst>(block->getTerminator()))
            return false;
    }
    if (instructions > std::min(LoopInstructionsMax, room))
        return false;
    for (BasicBlock *block : loop.blocks())
        if (std::optional<Check> check = checkAt(*block); check && !loop.contains(check->branch->getSuccessor(check->trapSuccessor)))
            if (loop.contains(check->passed()) && add(*check))
                proven.push_back(*check);
    for (BasicBlock *block : loop.blocks())
        for (Instruction &instruction : *block)
            if (auto *wider = dyn_cast<ZExtInst>(&instruction); wider && wider->getType()->isIntegerTy(64))
                for (auto [number, member] : enumerate(members))
                    if (evolution.getSCEV(wider->getOperand(0)) == member.index) {
                        widenings.push_back({wider, unsigned(number)});
                        break;
                    }
    if (proven.empty())
        return false;
    room -= instructions;
    return true;
}

// The length there, or 4 GiB if that is less: behind it a 32-bit index would wrap.
Value *Version::lengthBefore(LoadInst *length, IRBuilder<> &builder) {
    auto *load = builder.CreateLoad(length->getType(), length->getPointerOperand(), "length");
    load->setMetadata(LLVMContext::MD_tbaa, length->getMetadata(LLVMContext::MD_tbaa));
    load->setAlignment(length->getAlign());
    return builder.CreateBinaryIntrinsic(Intrinsic::umin, load, builder.getInt64(Memory32BytesMax));
}

void Version::prove(SCEVExpander &expander) {
    Instruction *at = preheader->getTerminator();
    Type *wide = Type::getInt64Ty(at->getContext());
    Value *count = bound ? expander.expandCodeFor(bound, bound->getType(), at) : nullptr;
    for (Group &group : groups) {
        group.firstValue = expander.expandCodeFor(group.first, group.first->getType(), at);
        group.stepValue = group.step ? expander.expandCodeFor(group.step, group.step->getType(), at) : nullptr;
    }
    IRBuilder<> builder(at);
    inside = builder.getTrue();
    auto require = [&](Value *condition) { inside = builder.CreateAnd(inside, condition); };
    if (count) {
        if (!evolution.getUnsignedRangeMax(bound).ult(IterationsMax))
            require(builder.CreateICmpULT(count, ConstantInt::get(count->getType(), IterationsMax)));
        count = builder.CreateZExtOrTrunc(count, wide);
    }
    SmallDenseMap<Value *, Value *, 4> lengths;
    for (Group &group : groups) {
        Value *&length = lengths[group.length->getPointerOperand()];
        if (!length)
            length = lengthBefore(group.length, builder);
        if (group.first->getType() == wide && !evolution.getUnsignedRangeMax(group.first).ult(FirstMax))
            require(builder.CreateICmpULT(group.firstValue, builder.getInt64(FirstMax)));
        group.firstValue = builder.CreateZExt(group.firstValue, wide);
        Value *low = group.firstValue, *high = group.firstValue;
        if (group.step) {
            group.stepValue = builder.CreateSExt(group.stepValue, wide);
            Value *last = builder.CreateNSWAdd(group.firstValue, builder.CreateNSWMul(group.stepValue, count));
            group.up = evolution.isKnownNonNegative(group.step);
            if (group.up) {
                high = last;
            } else if (evolution.isKnownNonPositive(group.step)) {
                low = last;
            } else {
                Value *down = builder.CreateICmpSLT(last, group.firstValue);
                low = builder.CreateSelect(down, last, group.firstValue);
                high = builder.CreateSelect(down, group.firstValue, last);
            }
        }
        if (low != group.firstValue || group.least < 0)
            require(builder.CreateICmpSGE(builder.CreateNSWAdd(low, builder.getInt64(group.least)), builder.getInt64(0)));
        require(builder.CreateICmpSLE(builder.CreateNSWAdd(high, builder.getInt64(group.end)), length));
    }
}

// Gives the fast loop indices of 64 bits.
void Version::widen() {
    BasicBlock *header = loop.getHeader(), *latch = loop.getLoopLatch();
    SmallVector<Value *> current(groups.size(), nullptr);
    SmallVector<Value *> of(members.size(), nullptr);
    for (auto [wider, number] : widenings) {
        const Member &member = members[number];
        const Group &group = groups[member.group];
        if (!current[member.group]) {
            auto *phi = PHINode::Create(wider->getType(), 2, "index", header->begin());
            IRBuilder<> builder(latch->getTerminator());
            phi->addIncoming(group.firstValue, preheader);
            phi->addIncoming(builder.CreateAdd(phi, group.stepValue, "", /*HasNUW=*/group.up, /*HasNSW=*/true), latch);
            current[member.group] = phi;
        }
        if (!of[number]) {
            IRBuilder<> builder(header, header->getFirstInsertionPt());
            Value *base = current[member.group];
            of[number] = member.distance == 0
                             ? base
                             : builder.CreateAdd(base, builder.getInt64(member.distance), "", member.distance > 0, /*HasNSW=*/true);
        }
        wider->replaceAllUsesWith(of[number]);
        wider->eraseFromParent();
    }
}

void Version::split() {
    versionLoop(loop, {inside, LoopVersion::Loop}, ".checked");
    // After the proof, which was made of values in the preheader; the fast loop alone changes.
    widen();
    for (const Check &check : proven)
        check.remove();
}

} // namespace

PreservedAnalyses LoopChecksPass::run(Function &function, FunctionAnalysisManager &analyses) {
    if (none_of(function, [](BasicBlock &block) { return checkAt(block).has_value(); }))
        return PreservedAnalyses::all();
    auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    auto &loops = analyses.getResult<LoopAnalysis>(function);
    SmallVector<std::unique_ptr<Version>> versions;
    size_t room = FunctionInstructionsMax;
    for (Loop *loop : loops.getLoopsInPreorder()) {
        if (!loop->isInnermost())
            continue;
        auto version = std::make_unique<Version>(*loop, dominators, evolution);
        if (version->plan(room))
            versions.push_back(std::move(version));
    }
    // All is computed before anything is copied: the analyses do not outlive the first copy.
    SCEVExpander expander(evolution, "check");
    for (auto &version : versions)
        version->prove(expander);
    for (auto &version : versions)
        version->split();
    return versions.empty() ? PreservedAnalyses::all() : PreservedAnalyses::none();
}

} // namespace awsm
