// Rolls up loops that the producer of the WebAssembly has unrolled.
//
// clang's WebAssembly back end unrolls loops by two to five for a machine without vectors. Here such a loop would be vectorised across copies of
// itself, with shuffles, or not at all; rolled up, it is vectorised and unrolled for the processor that it will run on.
//
// A loop of one block is seen as a function from the values of its phis, and memory, to their next values. The pass looks for a function F of
// which the block is the k-th power (copies.cpp):
//  - Values that step by s in each iteration (scalar evolution knows them) step by s / k in F: what copy j uses must be what copy 0 uses, j
//    steps later.
//  - Stores in program order are distributed evenly among the copies, and what copy j stores must be computed as what copy 0 stores, from
//    what copy j - 1 leaves. Chains through other phis (sums, say) are distributed evenly, too. Nothing is reassociated.
//  - Each load and store belongs to a copy. F accesses the bytes that the block accessed in the same iteration, so that the same iterations trap.
//    What changes is the order within an iteration, from the block's own to copy after copy: a store may be passed only by what is known to lie
//    elsewhere. A trap is reported at the place of copy 0 in the module.
// What computes addresses is not compared but computed anew.

#include "copies.h"
#include "passes.h"

#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Transforms/Utils/LoopUtils.h"
#include "llvm/Transforms/Utils/ScalarEvolutionExpander.h"

using namespace llvm;
using awsm::Copies;

namespace {

constexpr unsigned CopiesMax = 16;
// Without stores there is nothing to count copies by, so that all numbers are tried.
constexpr unsigned CopiesWithoutStoresMax = 8;
constexpr unsigned BlockInstructionsMax = 300;
constexpr uint64_t IterationsMax = uint64_t(1) << 40;

// A stepping value in the rolled loop, and others at constant distances.
struct Ramp {
    const SCEVAddRecExpr *of; // in the unrolled loop
    Value *value;
};

class Roller {
public:
    Roller(Loop &loop, ScalarEvolution &evolution, const Copies &copies)
        : loop(loop), block(*loop.getHeader()), evolution(evolution), copies(copies), expander(evolution, "roll"),
          preheaderEnd(*loop.getLoopPreheader()->getTerminator()) {}

    bool isPossible();
    void roll();

private:
    bool isComputable(const SCEV *scev) { return expander.isSafeToExpandAt(scev, &preheaderEnd); }
    bool isRamp(const SCEVAddRecExpr *value);
    bool isLiveOutKnown(Instruction &instruction);
    Value *expand(const SCEV *scev) { return expander.expandCodeFor(scev, scev->getType(), &preheaderEnd); }
    Value *operand(Value *value);
    Value *pointer(Value *value, const SCEVAddRecExpr *steps);
    Value *ramp(const SCEVAddRecExpr *steps);
    GEPNoWrapFlags flags(Value *value, Value *base) const;
    void addState(PHINode *state);
    void add(Instruction *instruction);
    void replaceLiveOuts(ArrayRef<Instruction *> old);
    void countIterations();

    Loop &loop;
    BasicBlock &block;
    ScalarEvolution &evolution;
    const Copies &copies;
    SCEVExpander expander;
    Instruction &preheaderEnd;
    SmallVector<Ramp, 4> ramps;
    DenseMap<Value *, Value *> rolled; // by what stood for it in copy 0
};

bool Roller::isPossible() {
    const SCEV *count = evolution.getBackedgeTakenCount(&loop);
    if (isa<SCEVCouldNotCompute>(count) || !evolution.getUnsignedRangeMax(count).ult(IterationsMax) || !isComputable(count))
        return false;
    auto isOperandPossible = [&](Value *value) {
        const SCEVAddRecExpr *steps = copies.stepping(value);
        return !steps || isRamp(steps);
    };
    for (Instruction *instruction : copies.body())
        if (!all_of(instruction->operands(), isOperandPossible))
            return false;
    for (PHINode *state : copies.states())
        if (!isOperandPossible(copies.next(state)))
            return false;
    return all_of(block, [&](Instruction &instruction) { return isLiveOutKnown(instruction); });
}

bool Roller::isRamp(const SCEVAddRecExpr *value) {
    if (!copies.step(value) || !isComputable(copies.step(value)))
        return false;
    if (!value->getType()->isPointerTy())
        return isComputable(value->getStart());
    auto *offset = dyn_cast<SCEVAddRecExpr>(evolution.removePointerBase(value));
    return isa<SCEVUnknown>(evolution.getPointerBase(value)) && offset && isComputable(offset->getStart());
}

// Whether what is used of an instruction behind the loop will be there.
bool Roller::isLiveOutKnown(Instruction &instruction) {
    auto isOutside = [&](const Use &use) { return cast<Instruction>(use.getUser())->getParent() != &block; };
    if (none_of(instruction.uses(), isOutside))
        return true;
    if (const SCEVAddRecExpr *steps = copies.stepping(&instruction)) {
        const SCEV *last = steps->evaluateAtIteration(evolution.getBackedgeTakenCount(&loop), evolution);
        return isComputable(last);
    }
    auto leaves = [&](PHINode *state) { return state->getIncomingValueForBlock(&block) == &instruction; };
    return any_of(copies.states(), leaves) || copies.ofLast(&instruction);
}

void Roller::roll() {
    SmallVector<Instruction *, 64> old;
    for (Instruction &instruction : block)
        if (!instruction.isTerminator())
            old.push_back(&instruction);
    for (PHINode *state : copies.states())
        addState(state);
    for (Instruction *instruction : copies.body())
        add(instruction);
    for (PHINode *state : copies.states())
        cast<PHINode>(rolled[state])->addIncoming(operand(copies.next(state)), &block);
    replaceLiveOuts(old);
    countIterations();
    for (Instruction *instruction : reverse(old)) {
        instruction->replaceAllUsesWith(PoisonValue::get(instruction->getType()));
        instruction->eraseFromParent();
    }
    evolution.forgetLoop(&loop);
}

void Roller::addState(PHINode *state) {
    PHINode *phi = PHINode::Create(state->getType(), 2, "", block.begin());
    phi->addIncoming(state->getIncomingValueForBlock(loop.getLoopPreheader()), loop.getLoopPreheader());
    rolled[state] = phi;
}

void Roller::add(Instruction *instruction) {
    Instruction *made = instruction->clone();
    for (Use &use : made->operands())
        use.set(operand(use.get()));
    for (unsigned copy = 1; copy < copies.count; ++copy)
        made->andIRFlags(copies.image(instruction, copy));
    made->dropUnknownNonDebugMetadata({LLVMContext::MD_tbaa});
    made->insertBefore(block.getTerminator()->getIterator());
    rolled[instruction] = made;
}

// What stands in the rolled loop for a value of copy 0.
Value *Roller::operand(Value *value) {
    if (loop.isLoopInvariant(value))
        return value;
    if (Value *known = rolled.lookup(value))
        return known;
    const SCEVAddRecExpr *steps = copies.stepping(value);
    Value *made = value->getType()->isPointerTy() ? pointer(value, steps) : ramp(steps);
    rolled[value] = made;
    return made;
}

Value *Roller::pointer(Value *value, const SCEVAddRecExpr *steps) {
    Value *base = cast<SCEVUnknown>(evolution.getPointerBase(steps))->getValue();
    Value *offset = ramp(cast<SCEVAddRecExpr>(evolution.removePointerBase(steps)));
    IRBuilder<> builder(block.getTerminator());
    return builder.CreateGEP(builder.getInt8Ty(), base, offset, "", flags(value, base));
}

// What is known of a pointer's arithmetic in all copies. The rolled loop makes the same pointers, in one step.
GEPNoWrapFlags Roller::flags(Value *value, Value *base) const {
    GEPNoWrapFlags flags = GEPNoWrapFlags::all();
    for (unsigned copy = 0; copy < copies.count; ++copy) {
        Value *pointer = copies.image(value, copy);
        for (; pointer != base; pointer = cast<GetElementPtrInst>(pointer)->getPointerOperand()) {
            if (!isa_and_nonnull<GetElementPtrInst>(pointer))
                return GEPNoWrapFlags::none();
            flags &= cast<GetElementPtrInst>(pointer)->getNoWrapFlags();
        }
    }
    // Several steps that do not wrap are one that does not only if all go up.
    return flags.hasNoUnsignedWrap() ? flags : GEPNoWrapFlags::none();
}

// A number that steps by what the copies are apart.
Value *Roller::ramp(const SCEVAddRecExpr *steps) {
    IRBuilder<> builder(block.getTerminator());
    for (const Ramp &known : ramps) {
        if (known.of->getType() != steps->getType())
            continue;
        if (auto *distance = dyn_cast<SCEVConstant>(evolution.getMinusSCEV(steps, known.of)))
            return distance->isZero() ? known.value : builder.CreateAdd(known.value, distance->getValue());
    }
    PHINode *phi = PHINode::Create(steps->getType(), 2, "", block.begin());
    phi->addIncoming(expand(steps->getStart()), loop.getLoopPreheader());
    phi->addIncoming(builder.CreateAdd(phi, expand(copies.step(steps))), &block);
    ramps.push_back({steps, phi});
    return phi;
}

void Roller::replaceLiveOuts(ArrayRef<Instruction *> old) {
    for (Instruction *instruction : old) {
        SmallVector<Use *, 4> outside;
        for (Use &use : instruction->uses())
            if (cast<Instruction>(use.getUser())->getParent() != &block)
                outside.push_back(&use);
        if (outside.empty())
            continue;
        Value *last = nullptr;
        if (const SCEVAddRecExpr *steps = copies.stepping(instruction))
            last = expand(steps->evaluateAtIteration(evolution.getBackedgeTakenCount(&loop), evolution));
        for (PHINode *state : copies.states())
            if (!last && state->getIncomingValueForBlock(&block) == instruction)
                last = operand(copies.next(state));
        if (!last)
            last = operand(copies.ofLast(instruction));
        for (Use *use : outside)
            use->set(last);
    }
}

// Makes the loop run as many times as there were copies executed.
void Roller::countIterations() {
    auto *branch = cast<BranchInst>(block.getTerminator());
    IRBuilder<> before(&preheaderEnd);
    Type *type = before.getInt64Ty();
    Value *taken = before.CreateZExtOrTrunc(expand(evolution.getBackedgeTakenCount(&loop)), type);
    Value *iterations = before.CreateNUWMul(before.CreateNUWAdd(taken, before.getInt64(1)), before.getInt64(copies.count));
    PHINode *number = PHINode::Create(type, 2, "", block.begin());
    IRBuilder<> builder(branch);
    Value *next = builder.CreateAdd(number, builder.getInt64(1), "", true, true);
    number->addIncoming(before.getInt64(0), loop.getLoopPreheader());
    number->addIncoming(next, &block);
    const auto again = branch->getSuccessor(0) == &block ? CmpInst::ICMP_NE : CmpInst::ICMP_EQ;
    branch->setCondition(builder.CreateICmp(again, next, iterations));
}

// Whether nothing in the loop has effects that are not known here.
bool isSimple(Loop &loop) {
    BasicBlock &block = *loop.getHeader();
    if (loop.getNumBlocks() != 1 || !loop.isLoopSimplifyForm() || !isa<BranchInst>(block.getTerminator()) ||
        block.size() > BlockInstructionsMax)
        return false;
    return all_of(block, [](Instruction &instruction) {
        if (auto *load = dyn_cast<LoadInst>(&instruction))
            return load->isSimple();
        if (auto *store = dyn_cast<StoreInst>(&instruction))
            return store->isSimple();
        if (isa<CallBase>(instruction) && !isa<IntrinsicInst>(instruction))
            return false;
        return !instruction.mayReadOrWriteMemory() && !instruction.mayHaveSideEffects() && !isa<AllocaInst>(instruction);
    });
}

bool reroll(Loop &loop, ScalarEvolution &evolution) {
    if (!isSimple(loop) || getBooleanLoopAttribute(&loop, "llvm.loop.unroll.disable"))
        return false;
    const auto stores = count_if(*loop.getHeader(), [](Instruction &instruction) { return isa<StoreInst>(instruction); });
    for (unsigned count = stores ? CopiesMax : CopiesWithoutStoresMax; count > 1; --count) {
        if (stores % count)
            continue;
        Copies copies(loop, evolution, count);
        if (!copies.find())
            continue;
        Roller roller(loop, evolution, copies);
        if (!roller.isPossible())
            continue;
        roller.roll();
        return true;
    }
    return false;
}

} // namespace

namespace awsm {

PreservedAnalyses RerollPass::run(Function &function, FunctionAnalysisManager &analyses) {
    auto &loops = analyses.getResult<LoopAnalysis>(function);
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    bool changed = false;
    for (Loop *loop : loops.getLoopsInPreorder())
        if (loop->isInnermost())
            changed |= reroll(*loop, evolution);
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace awsm
