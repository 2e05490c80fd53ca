// Bounds checks: what they look like, and those that one before them implies ("awsm-implied-checks").
//
// A memory's length only grows. So what was inside once is inside for as long as the sandbox lives, whatever was called in between and however
// often the length was loaded anew; LLVM cannot know that. This pass finds checks by their form (a comparison with a memory's length, which its
// alias class tells, that guards a trap) and drops those that a check before them implies.

#include "alias.h"
#include "checks.h"
#include "passes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm;
using namespace llvm::PatternMatch;

namespace awsm {

// Of one index. Compilers produce fewer; the limit bounds the time that a hostile module can take.
constexpr size_t FactsMax = 32;
// Phis and loads looked at for one length.
constexpr size_t LengthValuesMax = 16;

BasicBlock *Check::passed() const {
    return branch->getSuccessor(1 - trapSuccessor);
}

void Check::remove() const {
    BasicBlock *block = branch->getParent();
    branch->getSuccessor(trapSuccessor)->removePredecessor(block);
    auto *next = BranchInst::Create(passed(), branch->getIterator());
    next->setDebugLoc(branch->getDebugLoc());
    Value *condition = branch->getCondition();
    branch->eraseFromParent();
    RecursivelyDeleteTriviallyDeadInstructions(condition);
}

static bool traps(const BasicBlock &block) {
    if (isa<PHINode>(block.front()))
        return false;
    const auto *call = dyn_cast<IntrinsicInst>(&*block.getFirstNonPHIOrDbg());
    if (!call || call->getIntrinsicID() != Intrinsic::ubsantrap || !isa_and_nonnull<UnreachableInst>(call->getNextNode()))
        return false;
    return cast<ConstantInt>(call->getArgOperand(0))->getZExtValue() == uint64_t(TrapCode::MemoryOutOfBounds);
}

static bool isLength(const LoadInst &load) {
    return load.getType()->isIntegerTy(64) && !load.isVolatile() && aliasClassOf(load) == AliasClass::MemoryRecord;
}

// The load of a length that `value` is, or one of those of one record that it may be.
static LoadInst *lengthOf(Value *value) {
    SmallPtrSet<Value *, 8> seen;
    SmallVector<Value *, 8> pending{value};
    LoadInst *found = nullptr;
    while (!pending.empty()) {
        Value *next = pending.pop_back_val();
        if (!seen.insert(next).second)
            continue;
        if (seen.size() > LengthValuesMax)
            return nullptr;
        if (auto *phi = dyn_cast<PHINode>(next)) {
            append_range(pending, phi->incoming_values());
            continue;
        }
        auto *load = dyn_cast<LoadInst>(next);
        if (!load || !isLength(*load) || (found && found->getPointerOperand() != load->getPointerOperand()))
            return nullptr;
        found = load;
    }
    return found;
}

// What is left of `end` when a constant is taken off; `end` is at least that.
static std::pair<Value *, uint64_t> split(Value *end) {
    Value *index;
    const APInt *bytes;
    if (match(end, m_NUWAdd(m_Value(index), m_APInt(bytes))) && bytes->ule(BytesMax))
        return {index, bytes->getZExtValue()};
    if (match(end, m_APInt(bytes)) && bytes->ule(BytesMax))
        return {ConstantInt::get(end->getType(), 0), bytes->getZExtValue()};
    return {end, 0};
}

std::optional<Check> checkAt(BasicBlock &block) {
    auto *branch = dyn_cast<BranchInst>(block.getTerminator());
    if (!branch || !branch->isConditional())
        return std::nullopt;
    unsigned trap = traps(*branch->getSuccessor(0)) ? 0 : 1;
    if (!traps(*branch->getSuccessor(trap)) || traps(*branch->getSuccessor(1 - trap)))
        return std::nullopt;
    auto *comparison = dyn_cast<ICmpInst>(branch->getCondition());
    if (!comparison || !comparison->getOperand(0)->getType()->isIntegerTy(64))
        return std::nullopt;
    // Normalised to: traps when `left PREDICATE right`, with the length on the right.
    CmpPredicate predicate = trap == 0 ? comparison->getCmpPredicate() : comparison->getInverseCmpPredicate();
    for (bool swapped : {false, true}) {
        Value *left = comparison->getOperand(swapped), *right = comparison->getOperand(!swapped);
        CmpInst::Predicate is = swapped ? CmpInst::getSwappedPredicate(predicate) : CmpInst::Predicate(predicate);
        Value *length = right;
        const APInt *less = nullptr;
        uint64_t bytes = 0;
        // `index > length - less`, where that does not wrap, and `index >= max(length - less, 0)`.
        if (is == CmpInst::ICMP_UGT && match(right, m_NUWSub(m_Value(length), m_APInt(less)))) {
            bytes = less->getLimitedValue();
        } else if (is == CmpInst::ICMP_UGE && match(right, m_Intrinsic<Intrinsic::usub_sat>(m_Value(length), m_APInt(less)))) {
            bytes = less->getLimitedValue(BytesMax) + 1;
        } else if (is == CmpInst::ICMP_UGE) {
            bytes = 1;
        } else if (is != CmpInst::ICMP_UGT) {
            continue;
        }
        LoadInst *load = lengthOf(length);
        if (!load)
            continue;
        auto [index, more] = split(left);
        if (bytes > BytesMax || bytes + more > BytesMax)
            return std::nullopt;
        return Check{branch, trap, length, load, index, bytes + more};
    }
    return std::nullopt;
}

std::pair<const SCEV *, uint64_t> indexOf(const Check &check, ScalarEvolution &evolution) {
    const SCEV *index = evolution.getSCEV(check.index);
    uint64_t bytes = check.bytes;
    if (const auto *sum = dyn_cast<SCEVAddExpr>(index); sum && sum->getNumOperands() == 2) {
        const auto *more = dyn_cast<SCEVConstant>(sum->getOperand(0));
        const auto *narrow = dyn_cast<SCEVZeroExtendExpr>(sum->getOperand(1));
        if (more && narrow && narrow->getOperand()->getType()->isIntegerTy(32) && more->getAPInt().ule(BytesMax)) {
            index = narrow;
            bytes += more->getAPInt().getZExtValue();
        }
    }
    const auto *narrow = dyn_cast<SCEVZeroExtendExpr>(index);
    if (narrow && narrow->getOperand()->getType()->isIntegerTy(32))
        index = narrow->getOperand();
    return {index, bytes};
}

namespace {

// What is known to be inside: `bytes` bytes from `index + add`, with the sum in the index's own width.
struct Fact {
    APInt add;
    uint64_t bytes;
    const BasicBlock *from; // and what it dominates
};

// Drops checks that a check before them implies.
class Implied {
public:
    Implied(DominatorTree &dominators, ScalarEvolution &evolution) : dominators(dominators), evolution(evolution) {}

    bool run() {
        SmallVector<Check> implied;
        for (DomTreeNode *node : depth_first(dominators.getRootNode())) {
            std::optional<Check> check = checkAt(*node->getBlock());
            if (check && look(*check))
                implied.push_back(*check);
        }
        for (const Check &check : implied)
            check.remove();
        return !implied.empty();
    }

private:
    using Key = std::pair<const Value *, const SCEV *>;

    // Whether the check is implied; otherwise it implies others from now on.
    bool look(const Check &check) {
        auto [index, bytes] = indexOf(check, evolution);
        APInt add = APInt::getZero(evolution.getTypeSizeInBits(index->getType()));
        if (const auto *sum = dyn_cast<SCEVAddExpr>(index); sum && isa<SCEVConstant>(sum->getOperand(0))) {
            add = cast<SCEVConstant>(sum->getOperand(0))->getAPInt();
            index = evolution.getMinusSCEV(index, sum->getOperand(0));
        }
        const BasicBlock *block = check.branch->getParent();
        auto &known = facts[Key(check.length->getPointerOperand(), index)];
        for (const Fact &fact : known) {
            // How far behind the fact's first byte; should the index wrap in between, it lies before that byte.
            APInt after = add - fact.add;
            if (after.getLimitedValue(BytesMax) + bytes <= fact.bytes && dominators.dominates(fact.from, block))
                return true;
        }
        // Only what cannot be reached without the check.
        if (check.passed()->getSinglePredecessor()) {
            if (known.size() == FactsMax)
                known.erase(known.begin());
            known.push_back({add, bytes, check.passed()});
        }
        return false;
    }

    DominatorTree &dominators;
    ScalarEvolution &evolution;
    DenseMap<Key, SmallVector<Fact, 4>> facts;
};

} // namespace

PreservedAnalyses ImpliedChecksPass::run(Function &function, FunctionAnalysisManager &analyses) {
    if (none_of(function, [](BasicBlock &block) { return checkAt(block).has_value(); }))
        return PreservedAnalyses::all();
    auto &dominators = analyses.getResult<DominatorTreeAnalysis>(function);
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    return Implied(dominators, evolution).run() ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace awsm
