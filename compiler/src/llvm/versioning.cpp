// Gives loops a second version.

#include "versioning.h"

#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/LoopUtils.h"

using namespace llvm;

namespace {

// What a loop was copied to.
struct Copy {
    SmallVector<BasicBlock *> blocks;
    ValueToValueMapTy values; // of the copy, by those of the loop, blocks among them
};

} // namespace

// Keeps passes from spending code on a loop that hardly ever runs.
static void leaveAlone(Instruction &latch) {
    LLVMContext &context = latch.getContext();
    SmallVector<Metadata *> nodes{nullptr};
    for (const char *what : {"llvm.loop.unroll.disable", "llvm.loop.disable_nonforced"})
        nodes.push_back(MDNode::get(context, MDString::get(context, what)));
    MDNode *loop = MDNode::getDistinct(context, nodes);
    loop->replaceOperandWith(0, loop);
    latch.setMetadata(LLVMContext::MD_loop, loop);
}

// Copies the blocks, to behind the loop's.
static void copyBlocks(const Loop &loop, const Twine &suffix, Copy &copy) {
    BasicBlock *after = loop.getBlocks().back();
    for (BasicBlock *block : loop.blocks()) {
        BasicBlock *cloned = CloneBasicBlock(block, copy.values, suffix, block->getParent());
        copy.values[block] = cloned;
        copy.blocks.push_back(cloned);
        cloned->moveAfter(after);
        after = cloned;
    }
}

// Gives each phi behind the loop, for each edge from there, one from the copy.
static void joinExits(const Loop &loop, const Copy &copy, ScalarEvolution *evolution) {
    SmallVector<BasicBlock *, 8> exits;
    loop.getUniqueExitBlocks(exits);
    auto copied = [&](Value *value) {
        Value *found = copy.values.lookup(value);
        return found ? found : value;
    };
    for (BasicBlock *exit : exits)
        for (PHINode &phi : exit->phis()) {
            for (unsigned i = 0, count = phi.getNumIncomingValues(); i != count; ++i)
                phi.addIncoming(copied(phi.getIncomingValue(i)), cast<BasicBlock>(copied(phi.getIncomingBlock(i))));
            if (evolution)
                evolution->forgetValue(&phi);
        }
}

// Ends a block with the choice between the versions.
static void choose(BasicBlock &block, const awsm::Choice &choice, BasicBlock *loop, BasicBlock *copy) {
    const bool isLoop = choice.ifTrue == awsm::LoopVersion::Loop;
    Instruction *end = block.getTerminator();
    auto *branch = BranchInst::Create(isLoop ? loop : copy, isLoop ? copy : loop, choice.condition, end->getIterator());
    MDBuilder metadata(block.getContext());
    branch->setDebugLoc(end->getDebugLoc());
    branch->setMetadata(LLVMContext::MD_prof,
                        isLoop ? metadata.createLikelyBranchWeights() : metadata.createUnlikelyBranchWeights());
    end->eraseFromParent();
}

namespace awsm {

bool canVersion(const Loop &loop, const DominatorTree &dominators) {
    return loop.getLoopPreheader() && loop.getLoopLatch() && loop.hasDedicatedExits() && loop.isSafeToClone() &&
           loop.isLCSSAForm(dominators);
}

void versionLoop(Loop &loop, const Choice &choice, const Twine &suffix, const KeptAnalyses *kept) {
    BasicBlock *before = loop.getLoopPreheader(), *entry = loop.getHeader();
    Copy copy;
    Loop *copyLoop = nullptr;
    if (kept) {
        entry = SplitBlock(before, before->getTerminator(), &kept->dominators, &kept->loops);
        copyLoop = cloneLoopWithPreheader(entry, before, &loop, copy.values, suffix, &kept->loops, &kept->dominators, copy.blocks);
    } else {
        copyBlocks(loop, suffix, copy);
    }
    remapInstructionsInBlocks(copy.blocks, copy.values);
    joinExits(loop, copy, kept ? &kept->evolution : nullptr);
    choose(*before, choice, entry, cast<BasicBlock>(copy.values[entry]));
    leaveAlone(*cast<Instruction>(copy.values[loop.getLoopLatch()->getTerminator()]));
    if (!kept)
        return;
    // Both versions come to the exit now, so that neither dominates it.
    kept->dominators.changeImmediateDominator(loop.getUniqueExitBlock(), before);
    for (Loop *version : {copyLoop, &loop})
        formDedicatedExitBlocks(version, &kept->dominators, &kept->loops, nullptr, /*PreserveLCSSA=*/true);
}

} // namespace awsm
