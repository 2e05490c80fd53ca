// The copies of which an unrolled loop consists.

#pragma once

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/LoopInfo.h"
#include "llvm/Analysis/ScalarEvolution.h"
#include "llvm/Analysis/ScalarEvolutionExpressions.h"
#include "llvm/IR/Instructions.h"

namespace awsm {

// A loop of one block as `count` times the same function F, one after the other.
//
// Copy 0 is the part of the block that is F. A *stepping* value grows by a constant in each iteration; F makes its step a `count`th of that. A
// *state* is any other phi.
class Copies {
public:
    Copies(llvm::Loop &loop, llvm::ScalarEvolution &evolution, unsigned count)
        : count(count), loop(loop), block(*loop.getHeader()), evolution(evolution), images(count) {}

    // Whether the loop is that. If so, the functions below may be called.
    bool find();

    // How a value steps, or null if it does not.
    const llvm::SCEVAddRecExpr *stepping(llvm::Value *value) const;
    // What a value steps by in F.
    const llvm::SCEV *step(const llvm::SCEVAddRecExpr *value) const { return steps.lookup(value->getStepRecurrence(evolution)); }
    // Copy 0, without what steps, in the block's order.
    llvm::ArrayRef<llvm::Instruction *> body() const { return ordered; }
    llvm::ArrayRef<llvm::PHINode *> states() const { return phis.getArrayRef(); }
    // What F makes of a state, in terms of copy 0.
    llvm::Value *next(llvm::PHINode *state) const { return images[1].lookup(state); }
    // What has the place of a value of copy 0 in another copy.
    llvm::Value *image(llvm::Value *value, unsigned copy) const { return copy == 0 ? value : images[copy].lookup(value); }
    // The value of copy 0 that has the place of this one of the last copy; null if there is none.
    llvm::Value *ofLast(llvm::Value *value) const;

    const unsigned count;

private:
    struct Mark {
        size_t entries, phis, body;
    };

    bool match(llvm::Value *first, llvm::Value *other, unsigned copy);
    bool matchStep(const llvm::SCEVAddRecExpr *first, llvm::Value *other, unsigned copy);
    bool matchOperands(llvm::Instruction *first, llvm::Instruction *other, unsigned copy);
    bool distributeStores();
    bool distributeChain(llvm::PHINode *state);
    bool followStates();
    bool hasEveryAccess() const;
    bool keepsOrder() const;
    bool isApart(llvm::Instruction *one, llvm::Instruction *other) const;
    void enter(llvm::Value *first, llvm::Value *other, unsigned copy);
    void rollBack(const Mark &mark);
    llvm::Value *latched(llvm::PHINode *phi) const { return phi->getIncomingValueForBlock(&block); }

    llvm::Loop &loop;
    llvm::BasicBlock &block;
    llvm::ScalarEvolution &evolution;
    llvm::SmallVector<llvm::DenseMap<llvm::Value *, llvm::Value *>, 8> images;
    llvm::SmallVector<std::pair<unsigned, llvm::Value *>, 64> entries; // of images, in the order in which they were made
    unsigned pairs = 0; // compared so far
    llvm::SmallSetVector<llvm::PHINode *, 8> phis;
    llvm::SmallSetVector<llvm::Instruction *, 32> members; // of copy 0
    llvm::SmallVector<llvm::Instruction *, 32> ordered;
    llvm::DenseMap<const llvm::SCEV *, const llvm::SCEV *> steps; // of F, by those of the loop
};

} // namespace awsm
