// One check for accesses at the same index that follow each other with growing offsets: "awsm-neighbour-checks".
//
//     before:  check 8; access; check 16; access; check 24; access
//     after:   check 24; access; access; access          and where that fails:
//              check 8; access; check 16; access; trap
//
// The first check is made as wide as the widest. Where the wide one fails, a copy of what lies between runs with all of its checks, so that
// the access traps that has to, after the effects of those before it. The copy needs no way back: nothing in between can change the
// length, leave, or wait, so that the widest check fails there again at the latest.

#include "checks.h"
#include "passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Cloning.h"

#include <vector>

using namespace llvm;
using namespace llvm::PatternMatch;

namespace awsm {

// More is not worth a copy, of one chain or of all in a function.
constexpr size_t CopyInstructionsMax = 200;
constexpr size_t FunctionCopiesMax = 5000;

namespace {

// Blocks that end in checks, each but the first reached only from the one before.
using Chain = SmallVector<Check, 8>;

// Checks of a chain at the same index, by their places in it.
struct Cluster {
    size_t first, widest;
    uint64_t more; // bytes that the widest has more than the first
    SmallVector<size_t, 4> implied;
    BasicBlock *careful = nullptr; // where to go when the widened check fails
};

// Whether what runs in a block comes to its end, and changes no length.
bool isPlain(const BasicBlock &block) {
    return all_of(block, [](const Instruction &instruction) {
        const auto *call = dyn_cast<CallBase>(&instruction);
        return !isa<PHINode>(instruction) && (!call || isa<IntrinsicInst>(call)) &&
               (instruction.isTerminator() || isGuaranteedToTransferExecutionToSuccessor(&instruction));
    });
}

std::vector<Chain> chains(Function &function) {
    std::vector<Chain> found;
    SmallPtrSet<BasicBlock *, 32> seen;
    for (BasicBlock &block : function) {
        // Begins where no chain goes on.
        BasicBlock *before = block.getSinglePredecessor();
        std::optional<Check> checkBefore = before ? checkAt(*before) : std::nullopt;
        if (checkBefore && checkBefore->passed() == &block && isPlain(block))
            continue;
        Chain chain;
        BasicBlock *next = &block;
        while (std::optional<Check> check = checkAt(*next)) {
            chain.push_back(*check);
            next = check->passed();
            if (!next->getSinglePredecessor() || !isPlain(*next) || !seen.insert(next).second)
                break;
        }
        if (chain.size() > 1)
            found.push_back(std::move(chain));
    }
    return found;
}

std::vector<Cluster> clusters(const Chain &chain, ScalarEvolution &evolution) {
    struct Place {
        size_t at;
        uint64_t bytes;
    };
    MapVector<std::pair<Value *, const SCEV *>, SmallVector<Place, 4>> places;
    for (auto [at, check] : enumerate(chain)) {
        auto [index, bytes] = indexOf(check, evolution);
        places[{check.length->getPointerOperand(), index}].push_back({at, bytes});
    }
    std::vector<Cluster> found;
    for (auto &[key, members] : places) {
        Place first = members.front(), widest = first;
        size_t instructions = 0;
        for (const Place &place : members) {
            for (size_t at = widest.at + 1; at <= place.at; at++)
                instructions += chain[at].branch->getParent()->size();
            if (instructions > CopyInstructionsMax)
                break;
            if (place.bytes > widest.bytes)
                widest = place;
        }
        if (widest.bytes == first.bytes)
            continue;
        Cluster cluster{first.at, widest.at, widest.bytes - first.bytes, {}};
        for (const Place &place : members)
            if (place.at > first.at && place.bytes <= widest.bytes)
                cluster.implied.push_back(place.at);
        found.push_back(std::move(cluster));
    }
    return found;
}

// Copies what lies between the first check and the widest, with all of its checks; it ends where the widest fails.
size_t copyCareful(const Chain &chain, Cluster &cluster) {
    const Check &first = chain[cluster.first];
    BasicBlock *block = first.branch->getParent(), *after = block;
    Function *function = block->getParent();
    cluster.careful = BasicBlock::Create(block->getContext(), "careful", function);
    cluster.careful->moveAfter(after);
    after = cluster.careful;
    auto *again = cast<BranchInst>(first.branch->clone());
    again->insertInto(cluster.careful, cluster.careful->end());
    ValueToValueMapTy copies;
    SmallVector<BasicBlock *> blocks{cluster.careful};
    size_t instructions = 0;
    for (size_t at = cluster.first + 1; at <= cluster.widest; at++) {
        BasicBlock *original = chain[at].branch->getParent();
        BasicBlock *copy = CloneBasicBlock(original, copies, ".careful", function);
        copies[original] = copy;
        blocks.push_back(copy);
        instructions += copy->size();
        copy->moveAfter(after);
        after = copy;
    }
    remapInstructionsInBlocks(blocks, copies);
    auto *last = cast<BranchInst>(blocks.back()->getTerminator());
    auto *trap = BranchInst::Create(chain[cluster.widest].branch->getSuccessor(chain[cluster.widest].trapSuccessor), last->getIterator());
    trap->setDebugLoc(last->getDebugLoc());
    last->eraseFromParent();
    return instructions;
}

// Makes the first check as wide as the widest.
void widenFirst(const Check &first, const Cluster &cluster) {
    IRBuilder<> builder(first.branch);
    uint64_t bytes = first.bytes + cluster.more;
    Value *outside;
    if (match(first.index, m_ZExt(m_Value())) || isa<ConstantInt>(first.index)) {
        outside = builder.CreateICmpUGT(builder.CreateNUWAdd(first.index, builder.getInt64(bytes)), first.lengthValue);
    } else {
        Value *end = builder.CreateBinaryIntrinsic(Intrinsic::usub_sat, first.lengthValue, builder.getInt64(bytes - 1));
        outside = builder.CreateICmpUGE(first.index, end);
    }
    auto *branch = BranchInst::Create(cluster.careful, first.passed(), outside, first.branch->getIterator());
    branch->setDebugLoc(first.branch->getDebugLoc());
    branch->setMetadata(LLVMContext::MD_prof, MDBuilder(branch->getContext()).createUnlikelyBranchWeights());
    first.branch->eraseFromParent();
}

} // namespace

PreservedAnalyses NeighbourChecksPass::run(Function &function, FunctionAnalysisManager &analyses) {
    std::vector<Chain> found = chains(function);
    if (found.empty())
        return PreservedAnalyses::all();
    auto &evolution = analyses.getResult<ScalarEvolutionAnalysis>(function);
    std::vector<std::pair<Chain *, std::vector<Cluster>>> plans;
    size_t copied = 0;
    // All copies are made of what was there before.
    for (Chain &chain : found) {
        std::vector<Cluster> plan = clusters(chain, evolution);
        for (Cluster &cluster : plan)
            if (copied < FunctionCopiesMax)
                copied += copyCareful(chain, cluster);
        plans.push_back({&chain, std::move(plan)});
    }
    for (auto &[chain, plan] : plans)
        for (const Cluster &cluster : plan)
            if (cluster.careful) {
                widenFirst((*chain)[cluster.first], cluster);
                for (size_t at : cluster.implied)
                    (*chain)[at].remove();
            }
    return copied > 0 ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

} // namespace awsm
